"""A made-up run folder, as training and analyses would leave it."""

import itertools
import json
from pathlib import Path

import numpy as np
import pandas as pd

from rindices.analysis.balance import flow_table
from tests.plots.tables import doses, subgroups

# The evidence behind a verdict: for reproducible patterns, and for groups that do not differ.
FOUND = {
    "p": 0.005,
    "p_spread": 0.005,
    "p_shift": 0.035,
    "directions": 2,
    "found_again": 3,
    "eigenvalues": [9.12, 4.5, 2.2, 1.9],
    "limit": 3.35,
    "band": [3.35, 3.1, 2.9, 2.8],
    "detectable_auc": 0.56,
    "detectable_ratio": 1.83,
    "halves": 0.934,
    "halves_chance": 0.551,
    "halves_p": 0.05,
    "repetitions": 0.951,
    "with_linear": 0.883,
}
NOTHING = FOUND | {
    **dict.fromkeys(("halves", "halves_chance", "halves_p", "repetitions", "with_linear")),  # these need patterns
    "p": 0.41,
    "p_spread": 0.3,
    "p_shift": 0.6,
    "found_again": 0,
    "directions": 0,
    "eigenvalues": [3.2, 2.9, 2.6, 2.4],
}
RUN_TOML = """[command]
line = "rindices fit volumes.csv"

[table]
path = "volumes.csv"

[training]
n_patterns = [{n_patterns}]
n_repetitions = 10
random_state = 0
"""
AGREEMENT = ("pattern_agreement", "dimension_correlation", "difference_correlation")


def summary_of(n_patterns, n_controls, n_patients, n_regions):
    return {
        "status": "done",
        "n_controls": n_controls,
        "n_patients": n_patients,
        "n_other": 12,
        "n_features": n_regions,
        "n_patterns": n_patterns,
        "patterns_chosen_from_data": False,
        "weights": {"change": 6.0, "decomposition": 40.0, "orthogonality": 0.8, "near_control": 6.0},
        "preset": "fast",
        "repetitions": 10,
        "members_used": 9,
        "members_left_out": [{"member": 4, "reason": "disagrees with the others (0.61)"}],
        "step": 20000,
        "agreement": {"pattern_agreement": 0.95, "dimension_correlation": 0.9, "difference_correlation": 0.85},
        "verdict": "reproducible",
        "reliable": True,
        "reliable_reason": "Patients and controls differ (p = 0.005, permutation test).",
        "warnings": [],
        "seed": 0,
        "versions": {"rindices": "0.3.0", "jax": "0.7.0"},
        "device": "cpu",
        "seconds": 3725.2,
        "input_sha256": "ab" * 32,
        "source": "volumes.csv",
        "control_labels": ["CN"],
        "patient_labels": ["AD", "MCI"],
        "covariates": ["age", "sex"],
        "unit": "mL",
        "n_read": n_controls + n_patients + 12,
        "variables": {"age": "number", "sex": "category"},
        "level": 0.9,
        "reference": [[0.01, 0.05, 0.2]] * n_patterns,
    }


def make_run(folder: Path, n_patterns=3, n_controls=40, n_patients=60, n_regions=20, names=None):
    """Write the files of a run as training would; severities are uniform, controls near zero."""
    rng = np.random.default_rng(n_patterns)
    folder.mkdir(parents=True, exist_ok=True)
    sizes = {"control": n_controls, "patient": n_patients, "other": 12}
    groups = np.repeat(list(sizes), list(sizes.values()))
    truth = rng.uniform(size=(len(groups), n_patterns)) * (groups == "patient")[:, None]
    labels = {"control": "CN", "patient": "AD", "other": "unclear"}
    ids = pd.DataFrame({"participant_id": [f"sub-{place:04d}" for place in range(len(groups))]})
    people = ids.assign(diagnosis=[labels[group] for group in groups], group=groups)
    scores = truth * 0.9 + 0.03 + rng.normal(0, 0.07, truth.shape)
    known = {
        "r{}": scores,
        "r{}_sd": rng.uniform(0.01, 0.05, truth.shape),
        "severity{}": scores,
        "severity{}_low": scores - 0.2,
        "severity{}_high": scores + 0.3,
        "centile{}": np.clip(300 * scores, 0, 100),
    }
    columns = {name.format(k + 1): of[:, k] for name, of in known.items() for k in range(n_patterns)}
    people.assign(**columns, flags="").to_csv(folder / "r_indices.csv", index=False)
    regions = (names or []) + [f"region {place}" for place in range(n_regions - len(names or []))]
    size = np.sort(rng.gamma(1.0, 0.8, (n_patterns, n_regions)))[:, ::-1]
    change = (size * rng.choice([-1, -1, -1, 1], size.shape)).ravel()
    patterns = pd.DataFrame({"region": regions * n_patterns, "pattern": np.repeat(range(1, n_patterns + 1), n_regions)})
    patterns.assign(
        change_sd=change, change_percent=change * 6.1, spread_sd=rng.uniform(0.02, 0.3, len(change))
    ).to_csv(folder / "patterns.csv", index=False)
    steps = np.arange(2000, 32000, 2000)
    rise = 1 - np.exp(-steps / 6000) - 0.04 * (steps > 22000)
    differences = np.nan if n_patterns == 1 else 0.85 * rise
    agreement = dict(zip(AGREEMENT, (0.52 + 0.44 * rise, 0.05 + 0.9 * rise, differences), strict=True))
    selection = pd.DataFrame({"step": steps, **agreement, "best": steps == 20000, "chosen": steps == 20000})
    with_intervals(selection.assign(n_patterns=n_patterns, orthogonality=0.8, n_models=10)).to_csv(
        folder / "selection.csv", index=False
    )
    save_summary(folder, summary_of(n_patterns, n_controls, n_patients, n_regions))
    (folder / "run.toml").write_text(RUN_TOML.format(n_patterns=n_patterns))
    z_scores = pd.DataFrame(rng.normal(size=(len(ids), n_regions)).round(3), columns=regions)
    ids.join(z_scores).to_csv(folder / "z_scores.csv", index=False)
    ids.assign(age=70.5, sex="F").to_csv(folder / "variables.csv", index=False)
    people.assign(site="", used=True, reason="", distance=np.nan, far_in="", flags="").to_csv(
        folder / "people.csv", index=False
    )
    return truth


def with_intervals(selection, width=0.02):
    low, high = selection[[*AGREEMENT]] - width, (selection[[*AGREEMENT]] + width).clip(upper=1)
    return selection.join([low.add_suffix("_low"), high.add_suffix("_high")])


def add_settings(folder, settings):
    """Add settings to the selection that were not chosen: (patterns, orthogonality, models, pattern agreement)."""
    rows = [
        (*setting, value - less, value - less - 0.1, value - less - 0.2, step, step == 16000, False)
        for *setting, value in settings
        for step, less in ((10000, 0.1), (16000, 0.0))
    ]
    names = ["n_patterns", "orthogonality", "n_models", *AGREEMENT, "step", "best", "chosen"]
    chosen, others = pd.read_csv(folder / "selection.csv"), with_intervals(pd.DataFrame(rows, columns=names), 0.05)
    pd.concat([chosen, others]).to_csv(folder / "selection.csv", index=False)


def rewrite(path, **columns):
    """Replace columns of a table."""
    pd.read_csv(path).assign(**columns).to_csv(path, index=False)


def save_summary(folder, summary):
    (folder / "summary.json").write_text(json.dumps(summary))


def change_summary(folder, **changes):
    save_summary(folder, {**json.loads((folder / "summary.json").read_text()), **changes})


def add_truth(folder, truth):
    """Write the truth under reversed pattern names, which training cannot know, and with shuffled rows."""
    n_patterns, people = truth.shape[1], pd.read_csv(folder / "r_indices.csv")
    order = [f"s{n_patterns - place}" for place in range(n_patterns)]
    table = people[["participant_id"]].join(pd.DataFrame(truth, columns=order))
    table[people["group"] == "patient"].sample(frac=1, random_state=0).to_csv(folder / "truth.csv", index=False)
    change_summary(
        folder,
        recovery={
            "pattern_concordance": 0.911,
            "per_pattern": [0.9 + place / 100 for place in range(n_patterns)],
            "matched_truth": order,
            "matched_patterns": list(range(1, n_patterns + 1)),
            "n_known": n_patterns,
        },
    )


def add_analyses(folder, clinical=("mmse", "moca", "apoe4", "subtype"), sites=("Ann Arbor", "Basel"), n_drivers=30):
    """Add the record of people and all analysis tables except those of visits."""
    rng = np.random.default_rng(7)
    people = pd.read_csv(folder / "r_indices.csv", dtype={"participant_id": str})
    patterns = pd.read_csv(folder / "patterns.csv", keep_default_na=False)
    n_patterns = int(patterns["pattern"].max())
    _write_people(folder, people, rng, sites)
    save_analysis(_associations(people, clinical, n_patterns, rng), folder, "associations")
    save_analysis(_group_check(n_patterns), folder, "group_check")
    _write_regions(folder, patterns["region"].unique(), n_patterns)
    regions = pd.DataFrame({"region": patterns["region"].unique(), "n_controls": 40, "n_patients": 60})
    effect = np.linspace(-0.9, 0.3, len(regions))
    ps = {name: np.where(np.abs(effect) > 0.5, *two) for name, two in (("p", (0.0004, 0.2)), ("q", (0.001, 0.3)))}
    effects = regions.assign(effect=effect, low=effect - 0.3, high=effect + 0.3, t=5 * effect, **ps)
    save_analysis(effects, folder, "group_effects")
    drivers = [
        {"participant_id": person, "pattern": pattern, "rank": rank, "region": region, "change_sd": -1.31, "z": -0.84}
        for person in people.loc[people["group"] == "patient", "participant_id"].head(n_drivers)
        for pattern in range(1, n_patterns + 1)
        for rank, region in enumerate(patterns["region"].unique()[:6], start=1)
    ]
    save_analysis(pd.DataFrame(drivers), folder, "drivers")
    change_summary(
        folder,
        correction={
            "smooth": ["age"],
            "interactions": [["age", "sex"]],
            "proportion": "icv",
            "site": "site",
            "n_sites": len(sites),
        },
        covariates=["age", "sex", "icv", "site"],
        clinical=list(clinical),
        visits=False,
        excluded={"missing region": 3, "outlier": 2},
        n_read=len(people) + 5,
        subgroup_limits=[0.4, 0.7],
    )


def save_analysis(table, folder, name):
    (folder / "analysis").mkdir(exist_ok=True)
    table.to_csv(folder / "analysis" / f"{name}.csv", index=False)


def _write_people(folder, people, rng, sites):
    record = people[["participant_id", "diagnosis", "group"]].assign(
        used=True, reason="", far_in="", flags="", site=rng.choice(list(sites), len(people))
    )
    lost = {
        "participant_id": [f"lost-{place}" for place in range(5)],
        "used": False,
        "reason": ["missing region"] * 3 + ["outlier"] * 2,
        "far_in": [""] * 3 + ["distance"] * 2,
        "flags": ["lHip is missing"] * 3 + ["far away"] * 2,
    }
    record = pd.concat([record, record.sample(5, random_state=1).assign(**lost)], ignore_index=True)
    far = rng.chisquare(8, len(record)) + 20.0 * (record["reason"] == "outlier")
    record.assign(distance=far).to_csv(folder / "people.csv", index=False)
    save_analysis(flow_table(record), folder, "flow")


def _associations(people, clinical, n_patterns, rng):
    kinds = [("continuous", "Pearson r", ""), ("dichotomous", "point-biserial r", "1"), ("categorical", "eta²", "")]
    sizes, rows = {"patients": int((people["group"] == "patient").sum()), "everybody": len(people)}, []
    for group, (place, name), pattern in itertools.product(sizes, enumerate(clinical), range(1, n_patterns + 1)):
        kind, statistic, level = kinds[0 if place < 2 else min(place - 1, 2)]
        value = abs(rng.normal(0, 0.1)) if kind == "categorical" else rng.normal(-0.2, 0.2)
        p = 0.0004 if abs(value) > 0.2 else 0.3
        rows.append(
            {
                "people": group,
                "pattern": pattern,
                "variable": name,
                "level": level,
                "kind": kind,
                "n": sizes[group],
                "statistic": statistic,
                "coefficient": value,
                "low": value - 0.1,
                "high": value + 0.1,
                "p": p,
                "q": p,
                "partial": 0.8 * value,
                "partial_low": value - 0.2,
                "partial_high": value + 0.1,
                "partial_p": p,
                "partial_q": p,
                "whole_brain": -0.11,
                "whole_brain_q": 0.2,
                "beyond": 0.7 * value,
                "beyond_low": value - 0.2,
                "beyond_high": value + 0.2,
                "beyond_q": p,
                "note": "",
            }
        )
    rows[-1] |= dict.fromkeys(("coefficient", "low", "high", "p", "q"), np.nan) | {"note": "fewer than 10 people"}
    return pd.DataFrame(rows)


def _group_check(n_patterns):
    patterns = np.arange(1, n_patterns + 1)
    remark = "In controls, pattern 1 rises with age (r = 0.21), and patients are older: part of pattern 1 may be age."
    return pd.DataFrame(
        {
            "pattern": patterns,
            "variable": "age",
            "kind": "continuous",
            "statistic": "Pearson r",
            "p": 0.004,
            "n_controls": 40,
            "coefficient": 0.21,
            "q": 0.008,
            "removed": False,
            "n_patients": 50,
            "coefficient_patients": 0.05,
            "q_patients": 0.7,
            "explained": 0.12,
            "difference": 0.4,
            "adjusted": 0.352,
            "imbalanced": patterns == 1,
            "remark": np.where(patterns == 1, remark, ""),
        }
    )


def _write_regions(folder, regions, n_patterns):
    effects, sizes = subgroups(n_patterns, len(regions), regions)
    rule = "severity" + sizes["pattern"].astype(str) + ", " + sizes["level"] + ", others < 0.4"
    note = np.where(sizes["used"], "", "fewer than 10 patients")
    save_analysis(sizes.assign(rule=rule, note=note), folder, "subgroup_sizes")
    effects = effects.drop(columns="used").assign(n=30, t=5 * effects["effect"], p=effects["q"])
    save_analysis(effects, folder, "subgroups")
    save_analysis(doses(n_patterns, 6, regions).drop(columns="step"), folder, "dose_response")


def add_visits(folder):
    """Give everybody a baseline and a one-year visit, and add the tables of change to the other analyses."""
    people = pd.read_csv(folder / "r_indices.csv")
    scores = people.filter(regex=r"^severity\d+$").columns
    later = people.assign(**people[scores] + 0.05, visit="m12", years=1.0, first_visit=False)
    pd.concat([later, people.assign(visit="bl", years=0.0, first_visit=True)]).to_csv(
        folder / "r_indices.csv", index=False
    )
    for name in ("z_scores.csv", "variables.csv", "people.csv"):
        rows = pd.read_csv(folder / name, keep_default_na=False)
        used = rows[rows["used"]] if "used" in rows else rows
        both = pd.concat([used.assign(visit="m12"), rows.assign(visit="bl")])
        both.to_csv(folder / name, index=False)
    change_summary(folder, visits=True, n_read=len(both))
    drivers = pd.read_csv(folder / "analysis" / "drivers.csv", keep_default_na=False)
    save_analysis(drivers.assign(visit="bl"), folder, "drivers")
    slopes = np.linspace(0, 0.1, len(people))
    ends = {"_per_year": slopes, "_change": slopes, "_reliable": (slopes > 0.08).astype(int)}
    ends |= {"_change_low": slopes - 0.08, "_change_high": slopes + 0.08}
    columns = {name + end: values for name in scores for end, values in ends.items()}
    change = people[["participant_id", "group"]].assign(n_visits=2, years=1.0, **columns)
    save_analysis(change, folder, "change")
    rows = [(group, n, 0.05, 0.04, 0.06, 0.001) for group, n in change.groupby("group").size().to_dict().items()]
    rows.append(("patients minus controls", len(change), 0.002, -0.01, 0.014, 0.6))
    table, patterns = pd.DataFrame(rows, columns=["group", "n", "mean", "low", "high", "p"]), range(1, len(scores) + 1)
    table = table.assign(start=0.2, q=0.003, random_effects="slopes by person", note="")
    save_analysis(pd.concat(table.assign(pattern=pattern) for pattern in patterns), folder, "change_summary")
    noise = {"source": "controls", "n_controls": 40, "freedom": 39, "years": 1.0, "sd": 0.029}
    save_analysis(pd.DataFrame({"pattern": patterns, **noise}), folder, "scan_noise")


def balance_row(variable, kind, difference, p, imbalanced):
    return {
        "variable": variable,
        "kind": kind,
        "controls": "61.2 ± 8.1",
        "patients": "70.3 ± 7.9",
        "difference": difference,
        "p": p,
        "p_corrected": p,
        "imbalanced": imbalanced,
    }
