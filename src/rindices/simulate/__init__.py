"""Simulated cohorts with known severities, for trying out the software, checking it, and planning a study."""

from rindices.simulate.healthy_people import ReferencePopulation
from rindices.simulate.patterns import KINDS, SEVERITIES
from rindices.simulate.semisynthetic import SimulatedCohort, simulate_cohort

__all__ = ["KINDS", "SEVERITIES", "ReferencePopulation", "SimulatedCohort", "simulate_cohort"]
