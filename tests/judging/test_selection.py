"""Selection among made-up trainings, whose scores at each checkpoint are known."""

from dataclasses import replace

import numpy as np
import pytest

from rindices.core.inference import r_indices, reorder_patterns
from rindices.judging import selection
from rindices.judging import study as study_module
from rindices.judging.agreement_and_misfit import pairwise
from rindices.judging.selection import FIRST_REPETITIONS, choose, judge, rivals, sweep, usual_weights
from rindices.judging.study import Study
from rindices.preprocessing import whitening_matrix
from rindices.presets import Schedule, Training, blind, fast
from rindices.scoring.consensus_and_person import consensus
from rindices.training.chunks import Point, Settings, cut, members_of
from rindices.training.execution import Execution, Memory
from tests.core import plain
from tests.made_up import N_PATIENTS, N_REGIONS, Trained, judged, misfit, scores, trajectory

N_CONTROLS, POINT = 30, Point(3, 0.8)
DISTANCES = {1: 30.0, 2: 10.0, 3: 3.0, 4: 3.0}  # three patterns are enough


@pytest.fixture(autouse=True)
def _made_up_misfits(monkeypatch):
    monkeypatch.setattr(selection, "misfit", lambda _, correlations, *__: misfit(DISTANCES[correlations.shape[-1]]))


def make_study(seed=0, whitening=0.0, **schedule):
    rng = np.random.default_rng(5)
    patient = rng.permutation(np.repeat([False, True], [N_CONTROLS, N_PATIENTS]))
    scaled = rng.normal(1, 0.1, (len(patient), N_REGIONS)) - 0.2 * patient[:, None]
    chosen = {"min_steps": 0, "max_steps": 100, "whitening": whitening} | schedule
    return Study(scaled, patient, Settings(replace(blind(), schedule=Schedule(**chosen)), seed))


def finished(*trajectories):
    """Keep one trajectory per chunk in a store; return chunks and execution."""
    n_models = sum(one.r_indices.shape[1] for one in trajectories)
    chunks, execution = cut(members_of([POINT], range(n_models)), n_models // len(trajectories)), Execution(Memory())
    for chunk, one in zip(chunks, trajectories, strict=True):
        execution.store[chunk] = one
    return chunks, execution


def stopping_by_rule(study):
    """Return the study with the paper's stopping rule."""
    by_rule = replace(study.settings.preset, training=Training(freeze_below=(0.003, 6e-4), start="random"))
    return Study(study.residuals, study.patient, study.settings._replace(preset=by_rule))


def together(checkpoints, **options):
    """Keep all repetitions in one chunk."""
    return finished(trajectory(checkpoints, **options))


def select(checkpoints, **schedule):
    """Judge and take the consensus of repetitions that were trained together."""
    chunks, execution = together(checkpoints)
    found = judge(make_study(**schedule), POINT, len(checkpoints[0]), chunks, execution)
    return found, consensus(found, chunks, execution)


def rising_and_falling(*noise):
    return [scores(sd, sd, sd) for sd in noise]


def test_checkpoint_with_the_highest_agreement_is_chosen():
    checkpoints = rising_and_falling(0.5, 0.3, 0.05, 0.2, 0.4)
    found, selected = select(checkpoints)
    assert (found.best, [checkpoint.step for checkpoint in found.checkpoints]) == (2, [10, 20, 30, 40, 50])
    values = [checkpoint.agreement.pattern_agreement for checkpoint in found.checkpoints]
    assert found.value == values[2] == max(values)
    assert sorted(selected.members) == [0, 1, 2]
    expected = trajectory(checkpoints).weights[30].discriminator["layer1"]["weight"]
    np.testing.assert_array_equal(selected.models.discriminator["layer1"]["weight"], expected[selected.members])


def test_agreement_of_a_checkpoint_is_the_mean_over_pairs_of_models():
    members = scores(0.1, 0.2, 0.3).astype(np.float32)
    checkpoint = select([members])[0].best_checkpoint
    pairs = pairwise(members)[np.triu_indices(3, 1)]
    np.testing.assert_allclose(checkpoint.agreement, np.mean(pairs, axis=0), rtol=1e-6)
    assert all(
        low < value < high
        for low, value, high in zip(checkpoint.low, checkpoint.agreement, checkpoint.high, strict=True)
    )


def test_models_that_stop_by_a_rule_of_their_own_are_taken_as_they_stopped():
    study, (chunks, execution) = make_study(), together(rising_and_falling(0.01, 0.3, 0.5))
    assert [judge(one, POINT, 3, chunks, execution).best for one in (study, stopping_by_rule(study))] == [0, 2]


def one_of_two(sd):
    """Return scores of a sound model and of one that diverged, whose agreement is unknown."""
    return np.stack([scores(sd)[0], np.full((N_PATIENTS, 3), np.nan)])


COLLAPSED, SOUND = 0.01 * scores(0.01, 0.01), scores(0.5, 0.5)


@pytest.mark.parametrize(
    ("checkpoints", "least_steps", "best"),
    [
        *((rising_and_falling(0.01, 0.3, 0.5, 0.4), *case) for case in ((0, 0), (20, 1), (21, 3), (1000, 3))),
        ([scores(0.1)] * 3, 0, 2),  # a single repetition: the last
        ([one_of_two(0.01), SOUND, one_of_two(0.01)], 0, 1),  # with agreement rather than without
        ([COLLAPSED, SOUND, COLLAPSED], 0, 1),
    ],
)
def test_best_checkpoint_is_sound_and_trained_for_the_least_steps(checkpoints, least_steps, best):
    assert select(checkpoints, min_steps=least_steps)[0].best == best


def test_single_repetition_has_no_agreement():
    found, selected = select([scores(0.1)])
    assert (selected.members, selected.left_out, np.isnan(found.value)) == ([0], {}, True)


def test_reasons_are_given_for_members_left_out():
    found = scores(0.02, 0.02, 0.02, 0.02, 3.0, 0.02)
    found[1, 30, 0] = np.nan
    found[3, :, 2] = 0.4
    selected = select([found])[1]
    assert selected.left_out.pop(4).startswith("disagrees with the others (agreement 0.")
    assert list(selected.left_out.items()) == [(1, "diverged"), (3, "collapsed")]
    assert sorted(selected.members) == [0, 2, 5]


def test_losses_and_numbers_are_those_of_sound_models():
    found = scores(0.1, 0.1, 0.1)
    found[1] = np.nan
    checkpoint = select([found])[0].best_checkpoint
    assert (checkpoint.n_models, checkpoint.losses) == (2, {"change": 10 + (0 + 2) / 2})


def test_collapsed_members_are_used_when_there_are_no_others():
    judged, selected = select([0.01 * scores(0.1, 0.1)])
    assert (sorted(selected.members), selected.left_out, judged.best_checkpoint.n_models) == ([0, 1], {}, 0)
    assert not np.isnan(judged.best_checkpoint.losses["change"])


def test_collapsed_models_agree_as_others_where_there_are_no_others():
    found, expected = (select([first, SOUND])[0].checkpoints for first in (COLLAPSED, scores(0.01, 0.01)))
    for one, other in zip(found, expected, strict=True):
        assert one.agreement.pattern_agreement == pytest.approx(other.agreement.pattern_agreement)


def test_all_diverged_is_an_error_that_says_what_to_do():
    with pytest.raises(FloatingPointError, match=r"All models diverged.*.linear. preset"):
        select([np.full((2, N_PATIENTS, 3), np.nan)])


def test_models_are_brought_to_the_order_of_the_medoid_which_comes_first():
    brains = np.random.default_rng(1).normal(1, 0.5, (N_PATIENTS, N_REGIONS))
    one = plain.random_parameters(N_REGIONS, 3, seed=0)
    models = [reorder_patterns(one, np.array(order)) for order in ([2, 0, 1], [0, 1, 2], [1, 0, 2])]
    found = np.stack([plain.r_indices(model, brains) for model in models])
    noisy = found.copy()
    noisy[[0, 2]] += 0.1 * found.std() * np.random.default_rng(2).standard_normal((2, *found.shape[1:]))
    chunks, execution = together([noisy], models=plain.stacked(models))
    selected = consensus(judge(make_study(), POINT, 3, chunks, execution), chunks, execution)
    assert selected.members[0] == 1
    given = trajectory([noisy]).correlations[0]
    orders = [np.argsort([2, 0, 1]), [0, 1, 2], [1, 0, 2]]  # back to the medoid's order
    expected = np.mean([matrix[np.ix_(order, order)] for matrix, order in zip(given, orders, strict=True)], axis=0)
    np.testing.assert_allclose(selected.correlation, expected, rtol=1e-6)
    aligned = r_indices(selected.models, brains)
    np.testing.assert_allclose(aligned, np.broadcast_to(found[1], aligned.shape), rtol=1e-8)


def test_neither_chunks_nor_their_order_matter():
    checkpoints = rising_and_falling(0.5, 0.1)
    chunks, execution = finished(*(trajectory([checkpoint[[k]] for checkpoint in checkpoints]) for k in range(3)))
    apart = judge(make_study(), POINT, 3, chunks[::-1], execution)
    one = judge(make_study(), POINT, 3, *together(checkpoints))
    assert [checkpoint[:5] for checkpoint in apart.checkpoints] == [checkpoint[:5] for checkpoint in one.checkpoints]


def test_only_the_first_repetitions_are_judged():
    checkpoints = [scores(0.1, 0.1, 0.1, 9.0)]
    first = judge(make_study(), POINT, 3, *together(checkpoints))
    assert first.n_repetitions == first.best_checkpoint.n_models == 3
    assert first.value == select([checkpoints[0][:3]])[0].value


def test_models_that_were_frozen_before_others_stay_as_they_were():
    early, late = scores(0.5, 0.3), scores(0.5, 0.05)
    short = trajectory([early[[0]], late[[0]]])
    long = trajectory([early[[1]], late[[1]], late[[1]], late[[1]]])
    chunks, execution = finished(short, long)
    found = judge(make_study(min_steps=30), POINT, 2, chunks, execution)
    assert [checkpoint.step for checkpoint in found.checkpoints] == [10, 20, 30, 40]
    assert found.checkpoints[3].agreement == found.checkpoints[1].agreement != found.checkpoints[0].agreement
    assert (found.checkpoints[3].losses, found.best_checkpoint.step) == ({"change": (20 + 40) / 2}, 30)
    selected = consensus(found, chunks, execution)
    weights = dict(zip(selected.members, selected.models.discriminator["layer1"]["weight"], strict=True))
    kept = [one.discriminator["layer1"]["weight"][0] for one in (short.weights[20], long.weights[30])]
    np.testing.assert_array_equal([weights[0], weights[1]], kept)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ([(1, 0.9, 30.0), (2, 0.9, 3.0), (3, 0.87, 3.0), (4, 0.99, 2.9)], 2),  # the fewest that fit
        ([(2, 0.9, 4.9), (3, 0.8, 3.0)], 2),  # clearly worse, by two errors, is a factor of √e = 1.65
        ([(2, 0.9, 5.0), (3, 0.8, 3.0)], 3),
        ([(1, 0.9, 3.0), (2, 0.8, 3.0)], 1),  # one pattern is treated like any other number
        ([(1, 0.55, 3.0), (2, 0.8, 3.0)], 2),  # settings that fit must also agree
        ([(2, 0.9, 3.0), (3, 0.881, 3.0), (4, 0.862, 3.0), (5, 0.84, 3.0)], 4),  # more if they agree as well
        ([(2, 0.9, 3.0), (4, 0.95, 3.0)], 2),  # one more pattern at a time
        ([(2, 0.7, 9.0), (3, 0.55, 3.0), (4, 0.65, 9.0)], 2),  # none does both: the best agreement
        ([(2, 0.5, 3.0), (3, 0.58, 3.0)], 3),
        ([(2, 0.9, None), (3, 0.7, 3.0)], 3),  # no sound model
        ([(1, 0.9, None), (2, 0.7, None), (3, 0.8, None)], 3),  # no misfit: agreement alone, among several patterns
        ([(1, 0.9, None)], 1),
    ],
)
def test_fewest_patterns_that_fit_and_agree_are_chosen(settings, expected):
    given = [judged(value, m, distance=distance) for m, value, distance in settings]
    assert choose(given).point.n_patterns == choose(given[::-1]).point.n_patterns == expected


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ([(1, 0.9, 30.0), (2, 0.9, 3.0), (3, 0.8, 3.0)], {2}),
        ([(1, 0.9, 6.3), (2, 0.9, 3.0), (3, 0.8, 3.0)], {1, 2}),  # three errors are a factor of 2.12
        ([(1, 0.9, 6.4), (2, 0.9, 3.0), (3, 0.8, 3.0)], {2}),
        ([(2, 0.9, 3.0), (3, 0.85, 3.0), (4, 0.83, 3.0), (5, 0.7, 3.0)], {2, 3, 4}),  # these may agree as well
        ([(2, 0.5, 3.0), (3, 0.9, 3.0), (4, 0.8, 3.0)], {3}),
        ([(2, 0.9, 9.0), (3, 0.5, 3.0)], {2}),
    ],
)
def test_numbers_of_patterns_that_may_still_be_chosen_go_on(settings, expected):
    found = rivals([judged(value, m, distance=distance) for m, value, distance in settings])
    assert {point.n_patterns for point in found} == expected


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        *(([judged(0.9), judged(other, weight=0.4)], Point(3, 0.8)) for other in (0.89, 0.5, np.nan)),  # the best
        ([judged(np.nan, m, n_models=n) for m, n in ((2, 0), (3, 1), (4, 0))], Point(3, 0.8)),  # the most models
        ([judged(value, 1, weight=weight) for weight, value in ((0.2, 0.95), (0.4, 0.7))], Point(1, 0.2)),
    ],
    ids=["better", "much better", "without agreement", "no agreement at all", "one pattern only"],
)
def test_of_several_weights_the_one_that_agrees_best_goes_on(settings, expected):
    assert rivals(settings) == rivals(settings[::-1]) == [expected]
    assert choose(settings[::-1]).point == expected


GRID = [Point(2, 0.8), Point(3, 0.4), Point(3, 0.8), Point(4, 0.8)]
NOISE = {GRID[0]: (0.6, 0.5), GRID[1]: (0.3, 0.052), GRID[2]: (0.3, 0.05), GRID[3]: (0.9, 0.9)}


def swept(points=GRID, noise=NOISE, n_repetitions=5, **options):
    store = Trained(lambda member: noise[member.point])
    return sweep(make_study(), points, n_repetitions, Execution(store, models_per_chunk=1), **options), store


def test_the_paper_chooses_the_number_by_agreement_alone():
    noise = {Point(1, 0.8): (0.01, 0.01), Point(2, 0.8): (0.1, 0.1), Point(3, 0.8): (0.4, 0.4)}
    execution = Execution(Trained(lambda member: noise[member.point]), models_per_chunk=1)
    found = sweep(stopping_by_rule(make_study()), list(noise), 2, execution)
    assert [one.misfit for one in found.judged] == [None] * 3
    assert found.chosen.point == Point(2, 0.8)  # three patterns would fit best, and one agrees best
    assert swept(list(noise), noise, 2)[0].chosen.point == Point(3, 0.8)


def test_only_the_best_gets_all_repetitions():
    found, store = swept()
    best = found.chosen.point
    assert best in GRID[1:3]
    assert {one.point: one.n_repetitions for one in found.judged} == dict.fromkeys(GRID, FIRST_REPETITIONS) | {best: 5}
    trained = {member for chunk in store.asked for member in chunk.members}
    assert len(trained) == found.models_trained == 3 + 3 + 5 + 3
    assert trained == set(members_of(GRID, range(3))) | set(members_of([best], range(3, 5)))


class OneFails(Trained):
    """Repetitions in `failing` collapse; `learns_later` is whether they learn in a prolonged training."""

    def __init__(self, learns_later, failing):
        super().__init__(lambda _: (0.3, 0.05))
        self.learns_later, self.failing = learns_later, failing

    def _member(self, member):
        made = super()._member(member)
        fails = member.repetition in self.failing and not (member.prolonged and self.learns_later)
        return np.full_like(made, 0.5) if fails else made


def test_a_repetition_that_diverged_does_not_hide_one_that_is_late():
    assert selection._failed([""] * 5 + ["diverged"], np.array([0.02, 0.02, 0.02, 0.02, 0.08, np.nan])) == (4, 5)


@pytest.mark.parametrize(
    ("failing", "longest", "learns_later", "n_asked", "prolonged", "n_trained", "left_out"),
    [
        ((1,), 0, True, 4, set(), 5, [1]),
        ((1,), 500, True, 4, {1}, 4, []),
        ((1,), 500, False, 4, {1}, 5, [1]),
        ((1, 2, 3), 500, True, 4, set(), 4, [1, 2, 3]),  # no more time is spent where most repetitions fail
        ((1, 2, 3), 0, False, 7, set(), 9, [1, 2, 3]),  # at most two are replaced
    ],
)
def test_failed_repetitions_are_trained_on_before_they_are_replaced(
    failing, longest, learns_later, n_asked, prolonged, n_trained, left_out
):
    store = OneFails(learns_later, failing)
    execution = Execution(store, models_per_chunk=1)
    found = sweep(make_study(longest=longest), [POINT], n_asked, execution)
    asked = {member.repetition for chunk in store.asked for member in chunk.members if member.prolonged}
    assert (asked, found.chosen.n_repetitions, found.chosen.failed) == (prolonged, n_trained, tuple(left_out))
    selected = consensus(found.chosen, found.chunks, execution)
    assert (list(selected.left_out), len(selected.members)) == (left_out, n_trained - len(left_out))


def test_other_weights_are_tried_where_a_number_of_patterns_may_be_chosen():
    noise = NOISE | {Point(m, weight): (0.9, 0.9) for m in (1, 2, 4) for weight in (0.1, 0.3)} | {GRID[1]: (0.3, 0.01)}
    found, _ = swept(sorted(noise), noise)
    tried = [Point(1, 0.3), Point(2, 0.8), *GRID[1:3], Point(4, 0.8)]
    assert ([one.point for one in found.judged], found.chosen.point) == (tried, GRID[1])
    assert {*found.untried} == {point for point in noise if point not in tried and point.n_patterns > 1}
    assert found.models_exhaustive == 5 * (len(noise) - 1)
    whole, _ = swept(sorted(noise), noise, exhaustive=True)
    assert (whole.models_trained, whole.untried, whole.chosen.point) == (whole.models_exhaustive, [], GRID[1])


@pytest.mark.parametrize(("usual", "expected"), [(0.8, [(2, 0.4), (3, 0.9)]), (0.1, [(2, 0.2), (3, 0.2)])])
def test_usual_weight_is_the_nearest_that_was_asked_for(usual, expected):
    assert usual_weights([Point(3, 0.2), Point(2, 0.2), Point(2, 0.4), Point(3, 0.9)], usual) == expected


def test_exhaustive_search_trains_all_and_chooses_the_same():
    clear = NOISE | {GRID[1]: (0.3, 0.2)}
    found, _ = swept(noise=clear, exhaustive=True)
    assert (found.models_trained, found.n_first) == (5 * len(GRID), 5)
    quick, _ = swept(noise=clear)
    assert quick.n_first == FIRST_REPETITIONS
    assert (found.chosen.point, found.chosen.value) == (quick.chosen.point, quick.chosen.value)


def test_only_settings_with_all_repetitions_can_be_chosen():
    """Later repetitions of the best setting turn out badly, but a setting dropped before does not come back."""
    lucky, given_up = Point(3, 0.8), Point(4, 0.8)
    store = Trained(lambda member: (0.3 if member.point == given_up else 0.05 if member.repetition < 3 else 2.0,))
    found = sweep(make_study(), [lucky, given_up], 5, Execution(store, models_per_chunk=1))
    assert (found.chosen.point, [one.n_repetitions for one in found.judged]) == (lucky, [5, FIRST_REPETITIONS])
    assert found.judged[0].value < found.judged[1].value


def test_one_setting_gets_all_repetitions_at_once_and_duplicates_count_once():
    found, store = swept([POINT, POINT])
    assert (found.n_first, found.models_trained, len(found.judged), len(set(store.asked))) == (5, 5, 1, 5)


def test_fewer_repetitions_than_are_trained_first():
    assert {one.n_repetitions for one in swept(n_repetitions=2)[0].judged} == {2}


def test_setting_whose_models_diverge_is_given_up():
    noise = {Point(2, 0.8): (np.nan,), Point(3, 0.8): (0.8,)}
    found, _ = swept(list(noise), noise)
    given_up = found.judged[0]
    assert (given_up.n_repetitions, given_up.best_checkpoint.n_models) == (FIRST_REPETITIONS, 0)
    assert found.chosen.point == Point(3, 0.8)
    assert np.isnan(given_up.value)


def test_table_marks_one_best_checkpoint_a_setting_and_one_chosen():
    found, _ = swept()
    table = found.table()
    best, chosen = table[table["best"]], table[table["chosen"]].iloc[0]
    assert (len(table), table["chosen"].sum()) == (2 * len(GRID), 1)
    assert best[["n_patterns", "orthogonality"]].values.tolist() == [list(point) for point in GRID]
    expected = [*found.chosen.point, found.chosen.best_checkpoint.step, found.chosen.value]
    assert chosen[["n_patterns", "orthogonality", "step", "pattern_agreement"]].tolist() == expected
    assert [chosen["misfit"], *best["misfit"]] == pytest.approx([3.0, 10.0, 3.0, 3.0, 3.0])
    assert table.loc[~table["best"], "misfit"].isna().all()
    assert chosen["pattern_agreement_low"] <= chosen["pattern_agreement"] <= chosen["pattern_agreement_high"]


def test_number_of_models_in_a_chunk_is_fixed_by_the_store():
    store = Trained(lambda member: (0.1,))
    store.chunk_size = lambda propose: propose() + 2
    execution = Execution(store, models_per_chunk=1)
    sweep(make_study(), [POINT], 6, execution)
    assert [execution.models_per_chunk, *(len(chunk.members) for chunk in store.asked[:2])] == [3, 3, 3]


def test_how_linear_models_find_patterns_is_known_before_people_are_trained_on(monkeypatch):
    asked = []
    monkeypatch.setattr(study_module, "suited", lambda *of: (asked.append(of[2]), ("ica", {}))[1])
    study = make_study()
    linear = replace(study, settings=study.settings._replace(preset=replace(fast(), schedule=Schedule(0, 100))))
    for one in (study, linear):
        sweep(one, [Point(1, 0.8), *GRID], 2, Execution(Trained(lambda member: NOISE.get(member.point, (0.5,)))))
    assert asked == [2, 3, 4]  # one pattern has nothing to rotate, and random weights need no method
    assert dict(linear.people().methods) == {1: "sparse", 2: "ica", 3: "ica", 4: "ica"}
    assert dict(study.people().methods) == {}


def test_people_to_train_on_are_the_data_itself():
    study = make_study(whitening=0.5)
    people = study.people()
    controls, patients = study.trained_on[~study.patient], study.trained_on[study.patient]
    for found, expected in zip(people[:3], (controls, patients, whitening_matrix(controls, 0.5)), strict=True):
        np.testing.assert_array_equal(found, expected)
