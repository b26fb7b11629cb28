"""Where the public names come from, for type checkers: at run time they are loaded when first used."""

from rindices.cohort import Cohort as Cohort
from rindices.cohort import make_cohort as make_cohort
from rindices.cohort import read_cohort as read_cohort
from rindices.estimator import ContrastiveFactors as ContrastiveFactors
from rindices.estimator import SurrealGAN as SurrealGAN
from rindices.estimator import load_model as load_model
from rindices.pages.report import make_report as make_report
from rindices.pages.report import write_report as write_report
from rindices.presets import Correction as Correction
from rindices.problems import InputError as InputError
from rindices.run.fit_table import fit_table as fit_table
from rindices.search import SurrealGANSearch as SurrealGANSearch
from rindices.settings import OutputSettings as OutputSettings
from rindices.settings import SearchSettings as SearchSettings
from rindices.settings import TableSettings as TableSettings
from rindices.simulate import simulate_cohort as simulate_cohort

__version__: str
