import pytest
from sklearn.base import clone
from sklearn.utils import estimator_checks
from sklearn.utils.estimator_checks import parametrize_with_checks

from rindices import ContrastiveFactors, SurrealGAN, SurrealGANSearch
from tests.refusal import refused_with

# The checks use few people, and labels such as -1 and 1.
pytestmark = [
    pytest.mark.filterwarnings("ignore:Only .* controls and .* patients:UserWarning"),
    pytest.mark.filterwarnings("ignore:y contains .* not 0 and 1:UserWarning"),
]


TINY = SurrealGAN(2, n_repetitions=1, max_steps=2, random_state=0)
SEVERITIES = clone(TINY).set_params(output="severities")
SEARCH = SurrealGANSearch(2, (0.4, 0.8), n_repetitions=1, max_steps=2, random_state=0)  # one compiled program
FACTORS = ContrastiveFactors(random_state=0)


@parametrize_with_checks([TINY, SEVERITIES, SEARCH, FACTORS])
def test_scikit_learn_finds_no_fault(estimator, check):
    check(estimator)


@pytest.mark.parametrize(
    "name",
    [
        "check_transformer_get_feature_names_out",
        "check_transformer_get_feature_names_out_pandas",
        "check_set_output_transform",
        "check_set_output_transform_pandas",
        "check_global_output_transform_pandas",
    ],
)
# These checks pass an array to an estimator fitted on a table, and vice versa.
@pytest.mark.filterwarnings("ignore:X (does not have valid|has) feature names, but :UserWarning")
@pytest.mark.parametrize("estimator", [TINY, SEVERITIES, SEARCH, FACTORS])
def test_names_and_tables_follow_scikit_learn(name, estimator):
    getattr(estimator_checks, name)(type(estimator).__name__, clone(estimator))


@pytest.mark.parametrize("estimator", [TINY, SEARCH, FACTORS])
def test_reversed_columns_are_all_that_scikit_learn_would_refuse(estimator):
    """They are matched by name instead; `test_estimator` tests this, and that other columns are refused."""
    check, name = estimator_checks.check_dataframe_column_names_consistency, type(estimator).__name__
    refused_with("transform did not raise", check, name, clone(estimator), error=AssertionError)
