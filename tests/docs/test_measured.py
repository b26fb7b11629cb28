"""Figures of docs/results.md are those of the committed tables."""

import importlib.util

import pandas as pd

from rindices.core.inference import MOST_AT_ZERO
from tests.docs.pages import ROOT

RESULTS, PAGE = ROOT / "results", (ROOT / "docs" / "results.md").read_text(encoding="utf-8")


def percent(values, digits=0):
    return [f"{100 * value:.{digits}f} %" for value in values]


def test_where_severities_are_counted_from():
    table = pd.read_csv(RESULTS / "severe.csv").groupby("cohort", sort=False).mean(numeric_only=True)
    for cohort, row in table.iterrows():
        ours, by_f = ([f"{100 * row[part + 'inside']:.0f} %", f"{row[part + 'rmse']:.3f}"] for part in ("", "f_"))
        told = [cohort, f"{row['at_zero']:.2f}", *ours, f"{100 * row['raw']:.0f} %", *by_f]
        assert f"| {' | '.join(told)} |" in PAGE
    assert ((table["at_zero"] > MOST_AT_ZERO) == table.index.str.contains(r"Beta\(3, 1\)")).all()


def test_every_table_is_computed_from_committed_ones():
    spec = importlib.util.spec_from_file_location("claims", ROOT / "experiments" / "numbers" / "claims.py")
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    for head, rows in script.HEADS.items():
        assert PAGE.split(f"{head}\n")[1].split("\n\n")[0].split("\n")[1:] == rows()
    assert not [row for row in script.claims() if not (ROOT / row.command.split("`")[1].split()[1]).exists()]


def test_what_is_said_of_verdicts_and_counts():
    table = pd.read_csv(RESULTS / "verdicts.csv")
    null, ill = table[table["true"] == 0], table[table["true"] > 0]
    weak = null["state"] == "weak"
    assert f"none of {len(null)} was *reproducible* and {weak.sum()} were *weak*" in PAGE
    assert not (null["state"] == "reproducible").any()
    assert (ill["state"] == "reproducible").all()
    assert f"all {len(ill)} were *reproducible*" in PAGE
    assert weak.groupby(null["cohort"]).sum().max() == 1
    found = ill["concordance"] >= 0.75
    assert f"Of {found.sum()} cohorts whose consensus" in PAGE
    assert not table["state"].eq("not testable").any()
    sites = pd.read_csv(RESULTS / "balance.csv").query("sites == 4").groupby("older_sd")["confounded"].mean()
    assert f"randomised {percent(sites)[0]}; age difference of 0.5 sd {percent(sites)[1]}." in PAGE
    shown = pd.read_csv(RESULTS / "demonstration.csv")
    assert f"a concordance of {shown['concordance'].min():.3f} to {shown['concordance'].max():.3f}" in PAGE
    assert (shown["used"] == shown["trained"]).all()
    trained = pd.read_csv(RESULTS / "linear_start.csv")
    assert f"{trained['left_out'].sum()} of {10 * len(trained):,} repetitions were excluded" in PAGE


def test_intervals_of_change_and_elsewhere():
    page = (ROOT / "docs" / "how-to" / "change-between-visits.md").read_text(encoding="utf-8")
    for (kind, progression), of in pd.read_csv(RESULTS / "true_change.csv").groupby(["kind", "progression"]):
        cells = [f"{100 * own['inside'].mean():.1f} %, {own['width'].mean():.2f}" for _, own in of.groupby("noise")]
        assert f"| {kind}, {'growing' if progression else 'unchanged'} | {' | '.join(cells)} |" in page
    null = pd.read_csv(RESULTS / "group_change.csv").drop_duplicates("seed")["least_q"] < 0.05
    assert f"In {len(null)} studies of 40 + 40" in page
    assert f"below 0.05 in {percent([null.mean()], 1)[0]}." in page
    page = (ROOT / "docs" / "how-to" / "anybody.md").read_text(encoding="utf-8")
    for _, of in pd.read_csv(RESULTS / "elsewhere.csv").groupby(["what", "size"]):
        cells = [f"{100 * own['inside'].mean():.1f} %, {own['width'].mean():.2f}" for _, own in of.groupby("kind")]
        assert f" | {' | '.join(cells)} |" in page


def test_resemblance():
    table = pd.read_csv(RESULTS / "resemblance.csv")
    told = {
        ("enigma", 2.5): "ENIGMA's maps, at most 2.5 sd at severity 1",
        ("enigma", 1.5): "ENIGMA's maps, at most 1.5 sd",
    }
    told |= {("unrelated", 2.5): "random smooth maps, 2.5 sd"}
    told |= {("unrelated, no people", 0.0): "random smooth maps themselves, without people"}
    for key, words in told.items():
        p = table[(table["kind"] == key[0]) & (table["strength"] == key[1])]["p_corrected"]
        strict, usual = percent([(p < 0.025).mean(), (p < 0.05).mean()])
        assert f"| {words} | {len(p)} | {strict} | {usual} |" in PAGE


def test_prognosis():
    table = pd.read_csv(RESULTS / "prognosis.csv")
    held, wrong = table["held"].mean(), (table["p_without_effect"] < 0.05).mean()
    assert f"Of {len(table)} intervals, {100 * held:.1f} % contain" in PAGE
    assert f"{100 * wrong:.1f} % of {len(table)} tests have p below 0.05" in PAGE
    assert f"about {table['n_events'].mean():.0f} events" in PAGE


def test_three_programs():
    table = pd.read_csv(RESULTS / "three_programs.csv")
    for row in table.to_dict("records"):
        numbers = [f"{row[name]:.2f}".replace("-", "−") for name in ("icc", "rank", "maps")]
        who = f"{row['what']} | {row['first']} and {row['second']} | {row['pattern']} | {row['patients']}"
        assert f"| {who} | {' | '.join(numbers)} |" in PAGE
    assert set(table[table["what"] == "put in"]["found_first"]) == {2}
    assert set(table[table["what"] == "autism"]["found_first"]) == {0}
