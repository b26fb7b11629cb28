"""Do verdicts, patterns and severities survive a change of program? The same people by CIVET and two FreeSurfers.

    python experiments/three_programs.py --table ABIDE_CT_pipelines_DKT_software_QC.csv --out results/three_programs.csv
    … --networks --out results/three_programs_networks.csv       # five repetitions of the default

The table has 62 DKT thicknesses of the same people of ABIDE by three programs. ``autism``: the patients and controls as
they are. ``put in``: half of the controls become patients through two patterns in a quarter of the regions each, with
the same people, regions and severities in each program (2 sd of that program at severity 1). Models correct for age,
sex and sites; patterns are matched to those of the first program. Only group statistics are written.
"""

from __future__ import annotations

import argparse
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import spearmanr

from rindices import ContrastiveFactors, SurrealGANSearch
from rindices.judging.agreement_and_misfit import match_patterns
from rindices.presets import Correction

SHARE, STRENGTH, N_PATTERNS = 0.25, 2.0, 2
FEWEST = 12  # controls per site: half of them become patients


def icc(first: np.ndarray, second: np.ndarray) -> float:
    """Return the intraclass correlation ICC(2, 1) for absolute agreement of single scores (Shrout and Fleiss)."""
    values = np.column_stack([first, second])
    n, k = values.shape
    rows, columns, grand = values.mean(axis=1), values.mean(axis=0), values.mean()
    between = k * ((rows - grand) ** 2).sum() / (n - 1)
    raters = n * ((columns - grand) ** 2).sum() / (k - 1)
    rest = ((values - rows[:, None] - columns + grand) ** 2).sum() / ((n - 1) * (k - 1))
    return float((between - rest) / (between + (k - 1) * rest + k * (raters - rest) / n))


def by_program(path: Path) -> tuple[dict[str, pd.DataFrame], list[str]]:
    """Return each program's table, with the same people in the same order, and the names of the regions."""
    table = pd.read_csv(path, index_col=0)
    regions = [name for name in table if name.startswith(("L_", "R_"))]
    parts = {str(name): own.set_index("SubjID").sort_index() for name, own in table.groupby("software")}
    parts = {name: own[own[regions].notna().all(axis=1)] for name, own in parts.items()}
    same = sorted(set.intersection(*(set(own.index) for own in parts.values())))
    parts = {name: own.loc[same] for name, own in parts.items()}
    first = next(iter(parts.values()))
    sizes = first.loc[first["DX_GROUP"] != 1, "SITE_ID"].value_counts()
    large = first["SITE_ID"].isin(sizes.index[sizes >= FEWEST]).to_numpy()
    return {name: own[large] for name, own in parts.items()}, regions


class Fitted(NamedTuple):
    """The fit of one program: the group difference, everybody's severities, and maps."""

    p: float
    found_again: int
    state: str
    severities: np.ndarray
    maps: np.ndarray


def fitted(own: pd.DataFrame, regions: list[str], patient: np.ndarray, n_patterns: int, networks: bool) -> Fitted:
    """Fit one program."""
    covariates = own[["AGE_AT_SCAN", "SEX", "SITE_ID"]].astype({"SEX": float, "SITE_ID": str})
    correction = Correction(site="SITE_ID")
    if networks:
        search = SurrealGANSearch(n_patterns=[n_patterns], n_repetitions=5, correction=correction, random_state=0)
        search.fit(own[regions], patient, covariates)
        seen, model = search.verdict_, search.best_estimator_
        maps = model.pattern_maps(own[regions][~patient], covariates[~patient])
        maps = maps.pivot(index="pattern", columns="region", values="change_sd")[regions].to_numpy()
        severities = model.severities(own[regions], covariates)
        return Fitted(seen.evidence.p, seen.evidence.found_again or 0, seen.state, severities, maps)
    linear = ContrastiveFactors(n_patterns=n_patterns, correction=correction, random_state=0)
    linear.fit(own[regions], patient, covariates)
    p, again = (linear.spectrum_.p, linear.spectrum_.found_again) if linear.spectrum_ else (np.nan, 0)
    return Fitted(p, again, "", linear.transform(own[regions], covariates), linear.maps_)


def compared(
    what: str, parts: dict[str, pd.DataFrame], regions: list[str], patient: np.ndarray, n: int, networks: bool
) -> list[dict]:
    """Fit each program, and compare patients' severities and maps between each pair of programs."""
    models = {name: fitted(own, regions, patient, n, networks) for name, own in parts.items()}
    rows = []
    for one, other in combinations(models, 2):
        first, second = models[one], models[other]
        a, b = first.severities, second.severities
        order, _ = match_patterns(a[patient], b[patient])
        for place, match in enumerate(order):
            x, y = a[patient][:, place], b[patient][:, match]
            rows.append(
                {
                    "what": what,
                    "first": one,
                    "second": other,
                    "pattern": place + 1,
                    "patients": int(patient.sum()),
                    "p_first": first.p,
                    "p_second": second.p,
                    "found_first": first.found_again,
                    "found_second": second.found_again,
                    **({"state_first": first.state, "state_second": second.state} if networks else {}),
                    "icc": icc(x, y),
                    "rank": float(spearmanr(x, y).statistic),
                    "maps": float(np.corrcoef(first.maps[place], second.maps[match])[0, 1]),
                }
            )
    return rows


def main() -> None:
    """Write a row for each pair of programs and pattern."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--table", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--networks", action="store_true")
    options = parser.parse_args()
    parts, regions = by_program(options.table)
    first = next(iter(parts.values()))
    rows = compared("autism", parts, regions, (first["DX_GROUP"] == 1).to_numpy(), 1, options.networks)
    rng = np.random.default_rng(0)
    healthy = {name: own[own["DX_GROUP"] != 1].copy() for name, own in parts.items()}
    sites = next(iter(healthy.values()))["SITE_ID"]
    patient = (sites.groupby(sites).cumcount() % 2 == 1).to_numpy()
    severities = rng.uniform(size=(patient.sum(), N_PATTERNS))
    maps = np.zeros((N_PATTERNS, len(regions)))
    for own in maps:
        own[rng.choice(len(regions), round(SHARE * len(regions)), replace=False)] = -STRENGTH
    for own in healthy.values():
        own.loc[patient, regions] += severities @ maps * own.loc[~patient, regions].std().to_numpy()
    rows += compared("put in", healthy, regions, patient, N_PATTERNS, options.networks)
    pd.DataFrame(rows).round(4).to_csv(options.out, index=False)


if __name__ == "__main__":
    main()
