"""Figures of docs/results.md are those of the committed tables."""

import pandas as pd

from tests.docs.pages import ROOT

RESULTS, PAGE = ROOT / "experiments" / "results", (ROOT / "docs" / "results.md").read_text(encoding="utf-8")


def percent(values, digits=0):
    return [f"{100 * value:.{digits}f} %" for value in values]


def test_confounded_studies():
    table = pd.read_csv(RESULTS / "balance.csv")
    plain = table[table["sites"] == 1]
    for size in (50, 100, 150):
        of = plain[(plain["a_group"] == size) & (plain["older_sd"] == 0)].groupby("variables")["confounded"].mean()
        assert f"| randomised, {size} a group | {' | '.join(percent(of))} |" in PAGE
    older = plain[plain["older_sd"] > 0].groupby("variables")["confounded"].mean()
    assert f"| age different by 0.5 sd, 100 a group | | | {' | '.join(percent(older))} |" in PAGE
    sites = table[table["sites"] == 4].groupby("older_sd")["confounded"].mean()
    assert (
        f"randomised {percent(sites)[0]}, which is more than 5 %; age different by 0.5 sd {percent(sites)[1]}." in PAGE
    )


def test_interval_of_the_auc():
    of = pd.read_csv(RESULTS / "separation.csv").groupby("aim")[["inside", "before"]].mean()
    assert f"| inside | {' | '.join(percent(of['inside'], 1))} |" in PAGE
    assert f"| Hanley and McNeil, as before | {' | '.join(percent(of['before'], 1))} |" in PAGE


def test_filled_gaps():
    table = pd.read_csv(RESULTS / "gaps.csv")
    auc = table[table["what"] == "auc"].groupby("gaps")["value"].agg(["mean", "sem"])
    told = " | ".join(f"{row['mean']:.3f} ({row['sem']:.3f})" for _, row in auc.iterrows())
    assert f"| AUC without disease (standard error) | {told} |" in PAGE
    kept = table[(table["what"] == "kept") & (table["gaps"] > 0)].groupby("gaps")["value"].mean()
    assert f"| difference kept | | {' | '.join(percent(kept))} |" in PAGE


def test_withheld_intervals():
    table = pd.read_csv(RESULTS / "severe.csv").set_index("cohort")
    severe = table.loc[["basic, Beta(3, 1)", "mild, Beta(3, 1)"]]
    ratio, inside, raw = (severe[name] for name in ("ratio", "inside", "raw"))
    told = f"{ratio.iloc[0]:.2f}; {ratio.iloc[1]:.2f} | {100 * inside.iloc[0]:.0f}; {100 * inside.iloc[1]:.0f} %"
    assert f"{told} | **{100 * raw.iloc[0]:.0f}; {100 * raw.iloc[1]:.0f} %**" in PAGE
    assert (table["ratio"] > 2.15).sum() == 2


def test_resemblance():
    table = pd.read_csv(ROOT / "results" / "resemblance.csv")
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
    table = pd.read_csv(ROOT / "results" / "prognosis.csv")
    held, wrong = table["held"].mean(), (table["p_without_effect"] < 0.05).mean()
    assert f"Of {len(table)} intervals {100 * held:.1f} % hold" in PAGE
    assert f"{100 * wrong:.1f} % of {len(table)} tests have p below 0.05" in PAGE
    assert f"about {table['n_events'].mean():.0f} events" in PAGE
