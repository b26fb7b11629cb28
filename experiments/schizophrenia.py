"""Analyse schizophrenia at two visits: from the published table to group tables and verdicts.

python experiments/schizophrenia.py --table nimh_one_table.csv --runs runs/schizophrenia --out results/schizophrenia

The table is from the tutorial of PCNtoolkit-demo (NIMH Czechia; Rehák Bučková et al., eLife 95823): 98 patients at an
early stage and 67 controls, two visits, 148 Destrieux thicknesses. The run folders contain individual data and stay in
``--runs``; tables in ``--out`` contain only groups.

The contrast was specified before looking at the data: the mean thickness of the insula, the inferior frontal gyrus and
the orbital gyri, on both sides, is smaller in patients.
"""

from __future__ import annotations

import argparse
import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import stats
from scipy.optimize import linear_sum_assignment

from rindices.analysis import group_effects
from rindices.plots.brain_drawing import Layout, draw_brain
from rindices.run.fit_table import fit_table
from rindices.settings import OutputSettings, SearchSettings, TableSettings

FRONTO_INSULAR = (
    "G_insular_short",
    "G_Ins_lg&S_cent_ins",
    "S_circular_insula_ant",
    "S_circular_insula_inf",
    "S_circular_insula_sup",
    "G_front_inf-Opercular",
    "G_front_inf-Orbital",
    "G_front_inf-Triangul",
    "G_orbital",
)
SIDED = re.compile(r"^[lr]h_(.+)_thickness$")
AVERAGED = "{}_thickness"
HEAD = "icv"
PICTURE = Path(__file__).resolve().parents[1] / "docs" / "pictures" / "schizophrenia.svg"
_NEAR = 0.25  # largest difference in head size within a pair, in sd


def people_of(path: Path) -> tuple[pd.DataFrame, list[str]]:
    """Return the table with the columns for `fit`, and the names of its 148 thicknesses."""
    table = pd.read_csv(path)
    regions = [name for name in table if SIDED.match(name) and "Mean" not in name]
    group = next(name for name in table if set(table[name].astype(str)) >= {"CN", "SCZ"})
    kept = table.rename(columns={group: "diagnosis"})[
        ["participant_id", "session", "diagnosis", "age", "sex", HEAD, *regions]
    ]
    return kept, regions


def averaged(table: pd.DataFrame, regions: list[str]) -> pd.DataFrame:
    """Return the table with means of left and right, which are fewer than controls."""
    names = list(dict.fromkeys(SIDED.match(name)[1] for name in regions))
    means = {
        AVERAGED.format(name): table[[f"lh_{name}_thickness", f"rh_{name}_thickness"]].mean(axis=1) for name in names
    }
    return pd.concat([table.drop(columns=regions), pd.DataFrame(means)], axis=1)


def matched(table: pd.DataFrame, seed: int = 0) -> pd.DataFrame:
    """Return all visits of a random subset with equally many men and equally many women in both groups."""
    first, rng = table[table["session"] == 1], np.random.default_rng(seed)
    kept: list[str] = []
    for _, own in first.groupby("sex"):
        fewest = own["diagnosis"].value_counts().min()
        for _, group in own.groupby("diagnosis"):
            kept += list(rng.choice(group["participant_id"], fewest, replace=False))
    return table[table["participant_id"].isin(kept)]


def paired(table: pd.DataFrame) -> pd.DataFrame:
    """Return all visits of pairs of a control and a patient of the same sex and nearly the same head size.

    The number of pairs is maximised first, then their similarity; pairs that differ too much are left out.
    """
    first, kept = table[table["session"] == 1], list[str]()
    for _, own in first.groupby("sex"):
        controls, patients = (own[own["diagnosis"] == label] for label in ("CN", "SCZ"))
        far = np.abs(controls[HEAD].to_numpy()[:, None] - patients[HEAD].to_numpy()) / first[HEAD].std()
        chosen = linear_sum_assignment(np.where(far > _NEAR, 1e6, far))
        near = far[chosen] <= _NEAR
        for people, places in zip((controls, patients), chosen, strict=True):
            kept += people["participant_id"].iloc[places[near]].tolist()
    return table[table["participant_id"].isin(kept)]


def background(tables: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """Compare patients and controls in age and head size (Cohen's d) and sex (proportions)."""
    rows = []
    for who, table in tables.items():
        first = table[table["session"] == 1]
        controls, patients = (first[first["diagnosis"] == label] for label in ("CN", "SCZ"))
        d = {
            f"{name}_d": (patients[name].mean() - controls[name].mean())
            / np.sqrt((controls[name].var() + patients[name].var()) / 2)
            for name in ("age", HEAD)
        }
        shares = {"sex_controls": controls["sex"].mean(), "sex_patients": patients["sex"].mean()}
        rows.append({"people": who, "controls": len(controls), "patients": len(patients)} | d | shares)
    return pd.DataFrame(rows)


def of_regions(table: pd.DataFrame, regions: list[str]) -> pd.DataFrame:
    """Return Cohen's d of each region at the first visit, adjusted for age and sex."""
    first = table[table["session"] == 1]
    group = first["diagnosis"].map({"CN": "control", "SCZ": "patient"})
    return group_effects(first[regions], group, first[["age", "sex"]])


def drawn(effects: pd.DataFrame) -> bytes:
    """Return a drawing (SVG) of the effects on the cortex; regions whose interval contains 0 are grey."""
    table = effects.rename(columns={"effect": "change_sd"}).assign(pattern=1)
    unsure = effects["region"][effects["low"] * effects["high"] < 0].tolist()
    unit = "Cohen's d, patients minus controls"
    drawing = draw_brain(table, 1, unsure=unsure, unit=unit, layout=Layout(width=680))
    return drawing.svg("schizophrenia").encode()


def adjusted_difference(values: pd.Series, table: pd.DataFrame) -> dict[str, float]:
    """Return Cohen's d, adjusted for age and sex, of patients minus controls, with 95 % interval and two-sided p."""
    patient = (table["diagnosis"] == "SCZ").to_numpy(float)
    columns = np.column_stack([np.ones(len(table)), patient, table["age"], table["sex"]]).astype(float)
    slopes, residual, *_ = np.linalg.lstsq(columns, values.to_numpy(float), rcond=None)
    freedom = len(values) - columns.shape[1]
    sd = np.sqrt(residual[0] / freedom)
    error = sd * np.sqrt(np.linalg.inv(columns.T @ columns)[1, 1])
    t, half = slopes[1] / error, stats.t.ppf(0.975, freedom) * error / sd
    d = slopes[1] / sd
    return {"d": d, "low": d - half, "high": d + half, "p": 2 * stats.t.sf(abs(t), freedom)}


def contrast(table: pd.DataFrame, who: str) -> list[dict[str, object]]:
    """Return the specified contrast at each visit, and the group difference of its change between visits."""
    names = [f"{side}_{name}_thickness" for side in ("lh", "rh") for name in FRONTO_INSULAR]
    value, rows = table[names].mean(axis=1), []
    for session, own in table.groupby("session"):
        sizes = own["diagnosis"].value_counts()
        found = adjusted_difference(value[own.index], own)
        rows.append(
            {"people": who, "what": f"visit {session}", "controls": sizes["CN"], "patients": sizes["SCZ"]} | found
        )
    wide = (
        table[["participant_id", "session"]]
        .assign(value=value)
        .pivot(index="participant_id", columns="session", values="value")
        .dropna()
    )
    first = table[table["session"] == 1].set_index("participant_id").loc[wide.index]
    found = adjusted_difference(wide[2] - wide[1], first)
    sizes = first["diagnosis"].value_counts()
    rows.append({"people": who, "what": "change", "controls": sizes["CN"], "patients": sizes["SCZ"]} | found)
    return rows


def fitted(table: pd.DataFrame, folder: Path, name: str) -> dict[str, object]:
    """Fit a table with the linear preset, and return its verdict."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.csv"
    table.to_csv(path, index=False)
    settings = TableSettings(covariates=("age", "sex"), visit="session", control="CN", patients="SCZ")
    fit_table(path, folder / name, settings, SearchSettings(preset="linear"), OutputSettings(report=False))
    summary = json.loads((folder / name / "summary.json").read_text(encoding="utf-8"))
    evidence = summary["evidence"] or {}
    return {
        "table": name,
        "controls": summary["n_controls"],
        "patients": summary["n_patients"],
        "regions": summary["n_features"],
        "verdict": summary["verdict"],
        "n_patterns": summary["n_patterns"],
        **{key: evidence.get(key) for key in ("p", "p_spread", "p_shift", "found_again", "halves", "detectable_auc")},
        "auc": (summary["separation"] or {}).get("auc"),
    }


def main() -> None:
    """Write group tables: the contrast, the verdicts, resemblance of patterns, and change between visits."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--table", type=Path, required=True)
    parser.add_argument("--runs", type=Path, required=True, help="a folder for tables and runs, with single people")
    parser.add_argument("--out", type=Path, required=True, help="what the names of the tables of groups begin with")
    parser.add_argument("--picture", type=Path, default=PICTURE, help="the figure of groups (.svg)")
    parser.add_argument("--groups-only", action="store_true", help="fit nothing")
    options = parser.parse_args()
    table, regions = people_of(options.table)
    same, near = matched(table), paired(table)
    people = {"everybody": table, "matched for sex": same, "matched for sex and head size": near}
    rows = [row for who, own in people.items() for row in contrast(own, who)]
    pd.DataFrame(rows).round(4).to_csv(f"{options.out}_contrast.csv", index=False)
    background(people).round(4).to_csv(f"{options.out}_background.csv", index=False)
    effects = of_regions(table, regions)
    effects.round(4).to_csv(f"{options.out}_regions.csv", index=False)
    options.picture.write_bytes(drawn(effects))
    if options.groups_only:
        return
    tables = {"averaged": averaged(table, regions), "averaged_matched": averaged(same, regions), "both_sides": table}
    tables = {name: own.drop(columns=HEAD) for name, own in tables.items()}
    verdicts, changes, alike = [], [], []
    for name, own in tables.items():
        verdicts.append(fitted(own, options.runs, name))
        pd.DataFrame(verdicts).round(4).to_csv(f"{options.out}_verdicts.csv", index=False)
        for file, into in (("change_summary", changes), ("resemblance", alike)):
            path = options.runs / name / "analysis" / f"{file}.csv"
            into += [pd.read_csv(path).assign(table=name)] if path.is_file() else []
    if changes:
        pd.concat(changes).round(4).to_csv(f"{options.out}_change.csv", index=False)
    if alike:
        strongest = pd.concat(alike).sort_values("r", ascending=False).groupby(["table", "pattern"]).head(3)
        strongest.round(4).to_csv(f"{options.out}_resemblance.csv", index=False)


if __name__ == "__main__":
    main()
