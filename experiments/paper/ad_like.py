"""Section 4.3 and Table 2 in layout: a study as large as the paper's, with clinical variables whose truth is known.

    python experiments/paper/ad_like.py --out results/ad_like.csv          # made for a GPU

850 controls, 2204 patients, two true patterns (medial temporal, frontal), basic and mild, three cohorts each; M = 2 to
4, five λ, ten models. A row for each cohort, M and λ at the look of the best agreement. Two further tables: for each M
at its best λ, correlations of the R-indices with ten clinical variables beside those of the true severities
(_clinical), and regions that differ from controls in subgroups of patients with little else (_subgroups; Fig. 3).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from cases import Case, Known, all_whole, draw
from clinical import draw_variables
from joblib import Parallel, delayed
from judging import Agreed, best_look, together
from many_cohorts import Group, steps_of_looks, train_all
from scipy.stats import false_discovery_control, pearsonr, ttest_ind
from table1 import ORTHOGONALITIES
from tables import Results, Scope, parser, scope

from rindices.core import devices
from rindices.judging.agreement import match_patterns, pairwise, pattern_concordance

SIZE = (850, 2204)
TRIED = (2, 3, 4)
KINDS = ("basic", "mild")
LIMITS = (0.4, 0.7)  # of the paper's subgroups


class Setting(NamedTuple):
    """One λ at the look where its models agree best."""

    orthogonality: float
    step: int
    agreed: Agreed | None
    members: np.ndarray


def settings_of(looks: np.ndarray, steps: list[int], orthogonality: float) -> Setting:
    """Choose the look of one λ."""
    place, agreed = best_look(looks, steps, 0)
    return Setting(orthogonality, steps[place], agreed, looks[place].astype(float))


def correlations(case: Case, n_patterns: int, best: Setting) -> list[dict[str, Any]]:
    """Correlate R-indices, and the true severities, with the clinical variables; patterns matched with the truth."""
    truth = draw(case).truth
    if best.agreed is None:
        return []
    used = best.members[best.agreed.members]
    consensus, medoid = together(best.members, best.agreed), used[_medoid(used)]
    variables = draw_variables(truth, case.seed)
    rows = []
    orders = {"consensus": match_patterns(truth, consensus)[0], "medoid": match_patterns(truth, medoid)[0]}
    for name, values in variables.items():
        there = values.notna().to_numpy()
        for pattern in range(truth.shape[1]):
            row: dict[str, Any] = {"kind": case.kind, "seed": case.seed, "n_patterns": n_patterns}
            row |= {
                "orthogonality": best.orthogonality,
                "variable": name,
                "pattern": pattern + 1,
                "n": int(there.sum()),
            }
            for who, scores in (("consensus", consensus), ("medoid", medoid)):
                found = pearsonr(scores[there, orders[who][pattern]], values[there])
                row |= {who: found.statistic, f"{who}_p": found.pvalue}
            row["truth"] = pearsonr(truth[there, pattern], values[there]).statistic
            rows.append(row)
    return rows


def _medoid(members: np.ndarray) -> int:
    """Return the place of the model that is most like the others."""
    pairs = pairwise(members)[..., 0]
    return int(np.nanmean(pairs, axis=1).argmax()) if len(pairs) > 1 else 0


def subgroups(case: Case, best: Setting) -> list[dict[str, Any]]:
    """Compare the regions of patients who have mostly one pattern with controls (t-tests, false discovery rate 5 %)."""
    known = draw(case)
    if best.agreed is None:
        return []
    scores = together(best.members, best.agreed)
    order, _ = match_patterns(known.truth, scores)
    scores = scores[:, order]
    rows = []
    for pattern in range(scores.shape[1]):
        alone = (np.delete(scores, pattern, axis=1) < LIMITS[0]).all(axis=1)
        own = scores[:, pattern]
        parts = {"low": own < LIMITS[0], "middle": (own >= LIMITS[0]) & (own < LIMITS[1]), "high": own >= LIMITS[1]}
        for name, inside in parts.items():
            row = {"kind": case.kind, "seed": case.seed, "pattern": pattern + 1, "subgroup": name}
            rows.append(row | _regions(known, alone & inside, pattern))
    return rows


def _regions(known: Known, chosen: np.ndarray, pattern: int) -> dict[str, Any]:
    controls, patients = known.regions[~known.patient], known.regions[known.patient][chosen]
    inside, elsewhere = known.affected[pattern], ~known.affected.any(axis=0)
    row: dict[str, Any] = {"n": len(patients), "n_regions": int(inside.sum()), "n_unaffected": int(elsewhere.sum())}
    if len(patients) < 2:
        return row
    lower = false_discovery_control(ttest_ind(patients, controls, equal_var=False).pvalue) < 0.05
    lower &= patients.mean(axis=0) < controls.mean(axis=0)
    z = (patients.mean(axis=0) - controls.mean(axis=0)) / controls.std(axis=0)
    row |= {"found": int((lower & inside).sum()), "found_unaffected": int((lower & elsewhere).sum())}
    return row | {"mean_z": float(z[inside].mean()), "mean_z_unaffected": float(z[elsewhere].mean())}


def tables_of(case: Case, n_patterns: int, settings: list[Setting]) -> tuple[list[dict], list[dict], list[dict]]:
    """Return the rows of one cohort and M: of its settings, of clinical variables and of subgroups."""
    truth = draw(case).truth
    rows = []
    for one in settings:
        row: dict[str, Any] = {"kind": case.kind, "seed": case.seed, "n_patterns": n_patterns}
        row |= {"orthogonality": one.orthogonality, "step": one.step}
        if one.agreed is not None:
            row |= {"pattern_agreement": one.agreed.value, "n_used": len(one.agreed.members)}
            if n_patterns == truth.shape[1]:
                row["consensus"] = pattern_concordance(truth, together(one.members, one.agreed))
        rows.append(row)
    best = max(settings, key=lambda one: -1.0 if one.agreed is None else one.agreed.value)
    return rows, correlations(case, n_patterns, best), subgroups(case, best) if n_patterns == truth.shape[1] else []


def run(size: Scope, out: Path) -> None:
    """Train what is missing; a group is all cohorts with one M."""
    results, clinical, groups_table = (
        Results(out.with_name(f"{out.stem}{part}.csv"), ["n_patterns"], comparable=not size.small)
        for part in ("", "_clinical", "_subgroups")
    )
    preset, steps = size.preset, steps_of_looks(size.preset)
    people, tried = ((60, 80), TRIED[:1]) if size.small else (SIZE, TRIED)
    cases = [Case(*people, kind, seed, 2) for kind in KINDS for seed in size.seeds]
    weightings = [preset.weights._replace(orthogonality=value) for value in ORTHOGONALITIES]
    groups = [
        Group(n, cases, [case.seed for case in cases], weightings, size.n_models)
        for n in tried
        if not results.has(n_patterns=n)
    ]
    results.describe(preset, seeds=size.seeds, n_models=size.n_models, n_controls=people[0], n_patients=people[1])
    if not groups:
        return
    with Parallel(n_jobs=-1) as cores:
        brains = all_whole(cases, cores)
        for group, trained in train_all(groups, brains, preset):
            own = [trained.of_cohort(place, case.n_patients) for place, case in enumerate(cases)]
            judged = cores(
                delayed(settings_of)(looks[:, which], steps, value)
                for looks in own
                for which, value in enumerate(ORTHOGONALITIES)
            )
            n = len(ORTHOGONALITIES)
            found = cores(
                delayed(tables_of)(case, group.n_patterns, judged[place * n : (place + 1) * n])
                for place, case in enumerate(cases)
            )
            for table, place in ((clinical, 1), (groups_table, 2), (results, 0)):
                rows = [row for of in found for row in of[place]]
                if rows:
                    table.add(rows)


def main(arguments: list[str] | None = None) -> None:
    """Run the experiment."""
    chosen = parser(__doc__, "ad_like").parse_args(arguments)
    devices.prepare()
    run(scope(chosen.small), chosen.out)


if __name__ == "__main__":
    main()
