import pytest
from sklearn.utils import estimator_checks
from sklearn.utils.estimator_checks import parametrize_with_checks

from rindices import SurrealGAN
from rindices.core import devices

devices.prepare()

# The checks give a few people, labels such as -1 and 1, and pure noise.
pytestmark = [
    pytest.mark.filterwarnings("ignore:Only .* controls and .* patients:UserWarning"),
    pytest.mark.filterwarnings("ignore:Batches of 32 are drawn with replacement:UserWarning"),
    pytest.mark.filterwarnings("ignore:y holds .* not 0 and 1:UserWarning"),
    pytest.mark.filterwarnings("ignore:Repetitions left out:UserWarning"),
]


def tiny() -> SurrealGAN:
    return SurrealGAN(2, n_repetitions=2, max_steps=2, random_state=0)


@parametrize_with_checks([tiny()])
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
        "check_dataframe_column_names_consistency",
    ],
)
def test_names_and_tables_follow_scikit_learn(name):
    getattr(estimator_checks, name)("SurrealGAN", tiny())
