"""Figures of docs/results.md, results/README.md and the tutorial on schizophrenia are those of the committed tables."""

import os
from pathlib import Path

import pandas as pd
import pytest

from rindices.core.inference import MOST_AT_ZERO
from rindices.run.first_look_and_power import chances
from tests.docs.pages import ROOT, script
from tests.pages.page import missing

# Figures of docs/results.md and results/README.md are those of the committed tables.


RESULTS, PAGE = ROOT / "results", (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
DETAILS = (RESULTS / "README.md").read_text(encoding="utf-8")


def percent(values, digits=0):
    return [f"{100 * value:.{digits}f} %" for value in values]


def test_where_severities_are_counted_from():
    cohorts = pd.read_csv(RESULTS / "severe.csv")
    table = cohorts.groupby("cohort", sort=False).mean(numeric_only=True)
    severe = table.index.str.contains(r"Beta\(3, 1\)")
    recognised, failing = cohorts["at_zero"] > MOST_AT_ZERO, cohorts["f_inside"] < 0.85
    assert (cohorts["unit"][recognised] - 2 / 3).abs().max() < 0.05  # severities are too low by "about a third"
    assert not missing(
        PAGE,
        f"this recognised {recognised[failing].sum()} of {failing.sum()} cohorts in which",
        f"and {recognised[~failing].sum()} of {(~failing).sum()} others",
        f"contain {100 * table['inside'].min():.0f} to {100 * table['inside'].max():.0f} % of severities",
        f"compared with {100 * table['f_inside'].min():.0f} to {100 * table['f_inside'].max():.0f} % for f",
        f"{100 * table[severe]['at_zero'].min():.0f} to {100 * table[severe]['at_zero'].max():.0f} % of its",
        f"as few as {100 * table['raw'].min():.0f} % of the true",
        f"In {len(table)} kinds of cohort chosen to break intervals",
    )


def test_how_intervals_do_with_few_people():
    table = pd.read_csv(RESULTS / "few_people.csv")
    lowest = table.loc[table["inside"].idxmin()]
    where = f"({lowest['kind']}, {lowest['n_controls']} + {lowest['n_patients']})"
    assert not missing(
        PAGE, f"In none of the {len(table)} cohorts", f"the lowest is {100 * lowest['inside']:.0f} % {where}"
    )
    assert lowest["inside"] > 0.85


def test_how_intervals_of_associations_do():
    table = pd.read_csv(RESULTS / "calibrate_associations.csv")
    covered = table[~((table["statistic"] == "eta²") & (table["correlation"] == 0))].dropna(subset="coverage")
    own, any_q = covered["coverage"], table["false_discoveries"].dropna()
    assert not missing(
        DETAILS,
        f"over {len(own)} combinations",
        f"in {100 * own.mean():.1f} % on average, and in {100 * own.min():.1f} to {percent([own.max()], 1)[0]}",
        f"in {100 * any_q.min():.1f} to {percent([any_q.max()], 1)[0]} of data sets",
    )


def test_how_stable_r_indices_are():
    table = pd.read_csv(RESULTS / "stability.csv")
    by = table.groupby("what").agg({"rms": ["min", "max"], "covered": ["min", "max"], "concordance": "mean"})
    digits, noise, again, others, truth = (
        by.loc[name]
        for name in (
            *("scored with three digits", "scored with 1 % of noise", "trained with other random numbers"),
            *("trained on other people", "truth"),
        )
    )
    most = digits["rms", "max"], noise["rms", "max"]
    for row, what in (
        (again, "after retraining with different random seeds"),
        (others, "after training on different people"),
    ):
        assert f"by {row['rms', 'min']:.3f} to {row['rms', 'max']:.3f} {what}" in PAGE
    pairs = 100 * again["concordance", "mean"], 100 * others["concordance", "mean"]
    shares = [
        f"{100 * row['covered', 'min']:.0f} to {100 * row['covered', 'max']:.0f} %" for row in (again, others, truth)
    ]
    told = [f"{value:.2f}" for value in table.groupby(["correlation", "kind"])["correlation_error"].mean()]
    assert not missing(
        PAGE,
        "at most {:.3f} after rounding to three digits and {:.3f} with 1 % noise".format(*most),
        "order {:.0f} % and {:.0f} % of the pairs".format(*pairs),
        f"covers {shares[0]} of the changes due to retraining and {shares[1]} of those",
        f"only {shares[2]} of true severities",
        f"is {told[0]} (basic) and {told[1]} (mild) if",
        f"and {told[2]} and {told[3]} at a true correlation of 0.6",
    )


def test_every_table_is_computed_from_committed_ones():
    claims = script("experiments/numbers/claims.py")
    for head, rows in claims.HEADS.items():
        assert (PAGE + DETAILS).split(f"{head}\n")[1].split("\n\n")[0].split("\n")[1:] == rows()
    assert [
        row
        for row in claims.claims()
        if not (ROOT / "experiments" / "numbers" / row.command.strip("`").split()[0]).exists()
    ] == []


def test_ranges_of_confounding_and_of_the_auc():
    table = pd.read_csv(RESULTS / "balance.csv").query("sites == 1")
    called = table.groupby(["older_sd", "a_group", "variables"])[["confounded", "before"]].mean().mul(100).round()
    found = called.loc[0, "confounded"]
    called_before = "called {:.0f}, {:.0f}, {:.0f} and {:.0f} % so".format(*called.loc[(0, 100), "before"])
    assert f"{called_before} with 100 per group" in DETAILS
    recognised = "recognised in {:.0f} % (6 variables) and {:.0f} % (20 variables)".format(
        *called.loc[(0.5, 100), "confounded"]
    )
    for page in (PAGE, DETAILS):
        assert not missing(page, f"{found.min():.0f} to {found.max():.0f} % of randomised studies", recognised)
    table = pd.read_csv(RESULTS / "separation.csv")
    inside = 100 * table.groupby(["size", "aim"])["inside"].mean()
    before = 100 * table.groupby("aim")["before"].mean()
    assert not missing(
        DETAILS,
        f"it does so in {inside.min():.0f} to {inside.max():.0f} %",
        f"Hanley and McNeil's interval does so in {before.min():.0f} to {before.max():.0f} %",
    )
    assert not missing(
        PAGE,
        f"true value in {inside.min():.0f} to {inside.max():.0f} % of samples of a given size",
        f"Hanley and McNeil's interval does so in {before.min():.0f} to {before.max():.0f} %",
    )


def test_what_is_said_of_verdicts_and_counts():
    table = pd.read_csv(RESULTS / "verdicts.csv")
    null, ill = table[table["true"] == 0], table[table["true"] > 0]
    weak = null["state"] == "weak"
    assert not (null["state"] == "reproducible").any()
    assert (ill["state"] == "reproducible").all()
    assert weak.groupby(null["cohort"]).sum().max() == 1
    found = ill["concordance"] >= 0.75
    assert not table["state"].eq("not testable").any()
    sites = pd.read_csv(RESULTS / "balance.csv").query("sites == 4").groupby("older_sd")["confounded"].mean()
    assert f"randomised {percent(sites)[0]}; age difference of 0.5 sd {percent(sites)[1]}." in DETAILS
    shown = pd.read_csv(RESULTS / "demonstration.csv")
    assert (shown["used"] == shown["trained"]).all()
    trained = pd.read_csv(RESULTS / "linear_start.csv")
    assert not missing(
        PAGE,
        f"none of the {len(null)} cohorts was *reproducible* and {weak.sum()} were *weak*",
        f"all {len(ill)} were *reproducible*",
        f"Of {found.sum()} cohorts whose consensus",
        f"and in {percent(sites)[1]} at four sites",
        f"a concordance of {shown['concordance'].min():.3f} to {shown['concordance'].max():.3f}",
        f"{trained['left_out'].sum()} of {10 * len(trained):,} repetitions were excluded",
    )


def test_intervals_of_change_and_elsewhere():
    how_to = (ROOT / "docs" / "how-to" / "change-between-visits.md").read_text(encoding="utf-8")
    table = pd.read_csv(RESULTS / "true_change.csv")
    for (kind, progression), of in table.groupby(["kind", "progression"]):
        cells = [f"{100 * own['inside'].mean():.1f} %, {own['width'].mean():.2f}" for _, own in of.groupby("noise")]
        assert f"| {kind}, {'growing' if progression else 'unchanged'} | {' | '.join(cells)} |" in DETAILS
    groups = pd.read_csv(RESULTS / "group_change.csv")
    basic, mild = percent((groups["least_q"] < 0.05).groupby(groups["kind"]).mean(), 1)
    assert not missing(
        DETAILS, f"In {len(groups) // 2} studies of 40 + 40", f"below 0.05 in {basic} (basic) and {mild} (mild)."
    )
    inside = 100 * table.groupby(["noise", "kind", "seed"])["inside"].mean().groupby("noise").mean()
    width = table.groupby(["kind", "progression", "noise"])["width"].mean()
    assert not missing(
        how_to,
        f"below 0.05 in {basic} of basic and {mild} of mild studies.",
        f"[{inside.min():.0f} to {inside.max():.0f} % of true changes]",
        f"which is {width.min():.2f} to {width.max():.2f} wide",
    )
    for _, of in pd.read_csv(RESULTS / "elsewhere.csv").groupby(["what", "size"]):
        cells = [f"{100 * own['inside'].mean():.1f} %, {own['width'].mean():.2f}" for _, own in of.groupby("kind")]
        assert f" | {' | '.join(cells)} |" in DETAILS


def test_missing_regions_and_strangers():
    page = (ROOT / "docs" / "how-to" / "anybody.md").read_text(encoding="utf-8")
    table = pd.read_csv(RESULTS / "missing_regions.csv").query("gaps == 0")
    whole = table[table["missing"] == "complete"].set_index("cohort")["concordance"]
    table = table.assign(lost=table["cohort"].map(whole) - table["concordance"])
    for lost, of in table[table["missing"] != "complete"].groupby("missing"):
        sizes = [own for _, own in of.groupby("n_controls")][::-1]
        cells = [
            f"{own['lost'].mean():.3f}; {own['lost'].max():.3f} | {percent([own['cover'].mean()], 1)[0]}"
            for own in sizes
        ]
        assert f" | {' | '.join(cells)} |" in DETAILS, lost
    flagged = (
        pd.read_csv(RESULTS / "strangers.csv")
        .groupby(["people", "n_controls"])["strangers"]
        .agg(["mean", "min", "max"])
    )
    for kind, told in (("controls", "| controls |"), ("patients", "| patients; the most severe tenth |")):
        line = next(line for line in page.splitlines() if line.startswith(told))
        for _, row in (100 * flagged.loc[kind]).iterrows():
            assert f"{row['mean']:.1f} % ({row['min']:.1f} to {row['max']:.1f})" in line


def test_resemblance():
    table = pd.read_csv(RESULTS / "resemblance.csv")
    told = {
        ("enigma", 2.5): "ENIGMA's maps, at most 2.5 sd at severity 1",
        ("enigma", 1.5): "ENIGMA's maps, at most 1.5 sd",
        ("unrelated", 2.5): "random smooth maps, 2.5 sd",
        ("unrelated, no people", 0.0): "random smooth maps themselves, without people",
    }
    for key, words in told.items():
        p = table[(table["kind"] == key[0]) & (table["strength"] == key[1])]["p_corrected"]
        strict, usual = percent([(p < 0.025).mean(), (p < 0.05).mean()])
        assert f"| {words} | {len(p)} | {strict} | {usual} |" in DETAILS
        assert f"{strict} " in PAGE.split("**What a pattern resembles**")[1].split("\n")[0]
    for kind, of in pd.read_csv(RESULTS / "resemblance_large.csv").groupby("kind")["p_corrected"]:
        words = {"enigma": "ENIGMA's maps", "unrelated": "random smooth maps"}[kind]
        strict, usual = percent([(of < 0.025).mean(), (of < 0.05).mean()])
        assert f"| {words}, 500 + 500 people, 2.5 sd | {len(of)} | {strict} | {usual} |" in DETAILS
        assert kind == "unrelated" or f"({strict} at 2.5 sd with 500 + 500 people)" in PAGE
    single = pd.read_csv(RESULTS / "resemblance_single.csv")
    one = single.groupby(["kind", "strength"])["p_corrected"]
    shares = {key: percent([(p < 0.025).mean(), (p < 0.05).mean()]) for key, p in one}
    for (kind, strength), (strict, usual) in shares.items():
        words = "disorder per cohort: ENIGMA's maps" if kind == "enigma" else "per cohort: random smooth maps"
        assert f"| one {words}, {strength} sd | 100 | {strict} | {usual} |" in DETAILS
    enigma, random = ([shares[kind, strength][0] for strength in (2.5, 1.5)] for kind in ("enigma", "unrelated"))
    recognised = "in {} of cases at 2.5 sd and {} at 1.5 sd; random smooth maps pass in {} and {}"
    assert recognised.format(*enigma, *random) in PAGE
    assert (single[(single["kind"] == "enigma") & (single["p_corrected"] < 0.025)]["true_p_corrected"] < 0.025).all()


def test_prognosis():
    table = pd.read_csv(RESULTS / "prognosis.csv")
    held, wrong = table["held"].mean(), (table["p_without_effect"] < 0.05).mean()
    assert not missing(
        DETAILS,
        f"Of {len(table)} intervals, {100 * held:.1f} % contain",
        f"{100 * wrong:.1f} % of {len(table)} tests have p below 0.05",
        f"about {table['n_events'].mean():.0f} events",
    )
    assert not missing(
        PAGE,
        f"{100 * held:.1f} % of {len(table)} intervals contain",
        f"{100 * wrong:.1f} % of tests have p below 0.05",
    )


def test_fits_with_gaps():
    table = pd.read_csv(RESULTS / "gaps_fits.csv").query("missing == 0")
    found = table.pivot(index=["kind", "seed"], columns="gaps", values=["concordance", "inside"])
    worst = (found["concordance", 0.0] - found["concordance"].T).max(axis=None)
    held = 100 * found["inside"].groupby("kind").mean()[[0.1, 0.2]]
    how_to = (ROOT / "docs" / "how-to" / "anybody.md").read_text(encoding="utf-8")
    assert f"(at most {worst:.3f}), and {held.min(axis=None):.0f} to {held.max(axis=None):.0f} % of true" in DETAILS
    assert f"falls by at most {worst:.3f}, and" in how_to
    assert f"lower concordance by at most {worst:.3f}" in PAGE


def test_planned_studies_are_as_far_from_new_ones_as_the_page_says():
    found = pd.read_csv(RESULTS / "planning_check.csv")
    page = (ROOT / "docs" / "how-to" / "plan-a-study.md").read_text(encoding="utf-8")
    away = (found["chance"] - found["new_found"]).abs()
    assert not missing(
        page,
        f"In {len(found)} comparisons with 40 new studies each",
        f"differed by {away.mean():.2f} on average and by {away.max():.2f} at most",
    )
    first = found.iloc[:9]
    said = chances(*first[["controls", "patients", "regions"]].iloc[0].astype(int))
    assert said["chance"].to_numpy() == pytest.approx(first["chance"].to_numpy(), abs=1e-3)


def test_three_programs():
    for what, of in pd.read_csv(RESULTS / "three_programs_networks.csv").groupby("what"):
        ranges = [f"{of[name].min():.2f} to {of[name].max():.2f}" for name in ("icc", "rank", "maps")]
        assert f"| {' | '.join(ranges)} |" in DETAILS
        assert f"networks {ranges[0]})" in PAGE
        states = {*of["state_first"], *of["state_second"]}
        assert states == ({"not found again", "weak"} if what == "autism" else {"reproducible"})
    table = pd.read_csv(RESULTS / "three_programs.csv")
    said = {"autism": "patients with autism | 1", "put in": "identical in each program | 2"}
    for what, of in table.groupby("what"):
        ranges = [f"{of[name].min():.2f} to {of[name].max():.2f}".replace("-", "−") for name in ("icc", "rank", "maps")]
        (patients,) = set(of["patients"])
        assert of["pattern"].max() == int(said[what][-1])
        assert f"{said[what]} | {patients} | {' | '.join(ranges)} |" in DETAILS
        assert f"({'' if what == 'autism' else 'ICC '}{ranges[0]};" in PAGE
    assert set(table[table["what"] == "put in"]["found_first"]) == {2}
    assert set(table[table["what"] == "autism"]["found_first"]) == {0}


def test_chance_at_several_sites():
    shares = pd.read_csv(RESULTS / "chance_and_sites.csv").set_index("kind")["p"].le(0.05).groupby("kind").mean()
    ends = f"{100 * shares['even']:.0f} to {100 * shares['few controls']:.0f} %"
    assert f"{ends} of tables reach p = 0.05" in PAGE
    assert f"[{ends}]" in (ROOT / "docs" / "explanation" / "anything-to-find.md").read_text(encoding="utf-8")
    assert shares["disease"] == 1


def test_severities_by_age():
    cohorts = pd.read_csv(RESULTS / "severity_and_age.csv").query("preset == 'fast'")
    means = cohorts.groupby(["scale", "people"], sort=False).mean(numeric_only=True)
    lower, rank = ({scale: means[name][scale] for scale in ("volumes", "logarithms")} for name in means.columns[-2:])
    limits = (ROOT / "docs" / "explanation" / "limits.md").read_text(encoding="utf-8")
    assert [f"{value:.2f}" for value in lower["volumes"]] == ["-0.09", "-0.09"]
    true = "{:.2f} and {:.2f}".format(*means["true_with_age"]["volumes"])
    rises = [f"from {rank['volumes'][of]:.3f} to {rank['logarithms'][of]:.3f}" for of in ("simulated", "real")]
    assert not missing(
        limits,
        "r = −0.09 with age in ten simulated cohorts and in ten of IXI's",
        f"where the truth has {true}. With",
        "r was {:.2f} and {:.2f}, and concordance rose {} and {} (".format(*lower["logarithms"], *rises),
    )


# Numbers of the tutorial on schizophrenia are those of its tables; the contrast is computed again from the data.


TUTORIAL = (ROOT / "docs" / "tutorials" / "schizophrenia.md").read_text(encoding="utf-8")
DATA = Path(os.environ.get("RINDICES_DATA", "none")) / "schizophrenia" / "nimh_one_table.csv"
WHEN = {"visit 1": "first visit", "visit 2": "second visit", "change": "change"}
TABLES = {
    "averaged": "left and right averaged",
    "averaged_matched": "the same, matched for sex",
    "both_sides": "both sides",
}


SCRIPT = script("experiments/schizophrenia.py")


def number(value):
    return f"{value:.2f}".replace("-", "−")


def rows_of(contrast):
    for row in contrast.itertuples():
        numbers = f"{row.controls} | {row.patients} | {number(row.d)} | {number(row.low)} to {number(row.high)}"
        yield f"| {row.people} | {WHEN[row.what]} | {numbers} |"


def test_contrast_is_that_of_the_table():
    assert not missing(TUTORIAL, *rows_of(pd.read_csv(RESULTS / "schizophrenia_contrast.csv")))


def test_verdicts_are_those_of_the_table():
    for row in pd.read_csv(RESULTS / "schizophrenia_verdicts.csv").itertuples():
        evidence = f"{row.p} | {row.p_spread:.2f} | {row.p_shift} | {row.auc:.2f} | {row.halves:.2f}"
        sizes = f"{row.controls} | {row.patients} | {row.regions}"
        assert f"| {TABLES[row.table]} | {sizes} | {evidence} | {row.verdict} |" in TUTORIAL


def test_changes_and_resemblances_are_those_of_the_tables():
    change = pd.read_csv(RESULTS / "schizophrenia_change.csv")
    own = change[change["group"] == "patients minus controls"]
    assert (len(own), (own["q"] < 0.05).sum()) == (6, 1)
    alike = pd.read_csv(RESULTS / "schizophrenia_resemblance.csv").set_index(["table", "pattern", "disorder"])
    for key, r, p in (
        (("averaged", 2, "ADHD"), "0.56", 0.010),
        (("averaged_matched", 2, "schizophrenia"), "0.43", 0.042),
    ):
        assert (f"{alike.loc[key, 'r']:.2f}", alike.loc[key, "p_corrected"]) == (r, pytest.approx(p, abs=0.0006))
        assert r in TUTORIAL


def test_sentences_on_groups_and_regions_are_those_of_the_tables():
    groups = pd.read_csv(RESULTS / "schizophrenia_background.csv").set_index("people")
    everybody = groups.loc["everybody"]
    sexes = percent(everybody[["sex_controls", "sex_patients"]])
    near = groups.loc["matched for sex and head size"]
    assert near.sex_controls == near.sex_patients
    assert abs(near.icv_d) < 0.05
    regions = pd.read_csv(RESULTS / "schizophrenia_regions.csv").set_index("region")
    sure = regions[regions["q"] < 0.05]
    assert (sure["effect"] < 0).all()
    assert regions["effect"].idxmin() == "lh_S_circular_insula_sup_thickness"
    stated = [name for name in regions.index if name[3:].removesuffix("_thickness") in SCRIPT.FRONTO_INSULAR]
    assert not missing(
        TUTORIAL,
        "({} of the controls and {} of the patients".format(*sexes),
        f"head sizes differ by {everybody.icv_d:.2f} sd",
        f"{len(sure)} of {len(regions)} are thinner in patients",
        f"insula (d = {number(regions['effect'].min())})",
        f"{len(sure.index.intersection(stated))} of the {len(stated)} regions in the contrast",
    )


def test_sentences_on_verdicts_are_those_of_the_table():
    verdicts = pd.read_csv(RESULTS / "schizophrenia_verdicts.csv")
    assert {*verdicts["p"], *verdicts["p_shift"]} == {0.005}
    halves = verdicts["halves"]
    assert not missing(
        TUTORIAL,
        f"p for spread {verdicts['p_spread'].min():.2f} or more",
        f"agreement {halves.min():.2f} to {halves.max():.2f}",
    )
    change = pd.read_csv(RESULTS / "schizophrenia_change.csv")
    own = change[(change["group"] == "patients minus controls") & (change["q"] < 0.05)]
    assert own["table"].tolist() == ["averaged"]  # and not of the same table matched for sex


def test_numbers_of_people_needed_are_those_of_the_planning_table():
    def found(n_controls, n_patients, strength):
        table = chances(n_controls, n_patients, 74).set_index(["patterns", "strength"])["chance"]
        return percent(table[[(1, strength), (2, strength)]])

    one, two = found(67, 98, 1.0)
    assert not missing(
        TUTORIAL,
        f"in {one} of such studies if there is one and in {two} if there are two",
        "with 160 people in each group, the proportions are {} and {}.".format(*found(160, 160, 1.0)),
        "Patterns of 0.5 sd are found in {} and {} of studies of this size".format(*found(67, 98, 0.5)),
        "with 320 people in each group, in {} and {}.".format(*found(320, 320, 0.5)),
    )


@pytest.mark.skipif(not DATA.is_file(), reason="the published table is not here: set RINDICES_DATA")
def test_tables_of_groups_are_those_of_the_published_table():
    table, regions = SCRIPT.people_of(DATA)
    assert len(regions) == 148
    ages = table.pivot(index="participant_id", columns="session", values="age")
    assert f"{(ages[2] - ages[1]).mean():.1f} years apart" in TUTORIAL
    people = {
        "everybody": table,
        "matched for sex": SCRIPT.matched(table),
        "matched for sex and head size": SCRIPT.paired(table),
    }
    for line in rows_of(pd.DataFrame([row for who, own in people.items() for row in SCRIPT.contrast(own, who)])):
        assert line in TUTORIAL
    for name, made in (("background", SCRIPT.background(people)), ("regions", SCRIPT.of_regions(table, regions))):
        stored = pd.read_csv(RESULTS / f"schizophrenia_{name}.csv")
        pd.testing.assert_frame_equal(made.round(4), stored, check_dtype=False, atol=2e-4)
