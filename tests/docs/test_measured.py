"""Figures of docs/results.md, results/README.md and the tutorial on schizophrenia are those of the committed tables."""

import os
from pathlib import Path

import pandas as pd
import pytest

from rindices.run.first_look_and_power import chances
from tests.docs.pages import ROOT, script, text_of
from tests.pages.page import missing

# Figures of docs/results.md and results/README.md are those of the committed tables.


RESULTS, PAGE, DETAILS = ROOT / "results", text_of("docs/results.md"), text_of("results/README.md")


def percent(values, digits=0):
    return [f"{100 * value:.{digits}f} %" for value in values]


def ends(values, digits=0, by=1):
    """Return the range of some values as a page words it."""
    return f"{by * values.min():.{digits}f} to {by * values.max():.{digits}f}"


def test_how_intervals_of_associations_do():
    table = pd.read_csv(RESULTS / "calibrate_associations.csv")
    covered = table[~((table["statistic"] == "eta²") & (table["correlation"] == 0))].dropna(subset="coverage")
    own, any_q = covered["coverage"], table["false_discoveries"].dropna()
    assert not missing(
        DETAILS,
        f"over {len(own)} combinations",
        f"in {100 * own.mean():.1f} % of data sets on average, and in {ends(own, 1, 100)} %",
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
    again, others = (
        f"{ends(row['rms'], 3)} | {100 * row['concordance', 'mean']:.0f} % | {ends(row['covered'], by=100)} % |"
        for row in (again, others)
    )
    told = [f"{value:.2f}" for value in table.groupby(["correlation", "kind"])["correlation_error"].mean()]
    assert told[0] == told[1]
    assert not missing(
        PAGE,
        f"| values rounded to three digits | at most {digits['rms', 'max']:.3f} |",
        f"| noise of 1 % | at most {noise['rms', 'max']:.3f} |",
        f"| retraining with other random numbers | {again}",
        f"| training on other people with the same disease | {others}",
        f"| difference from the true severity | | | {ends(truth['covered'], by=100)} % |",
        f"is {told[0]} in both basic and mild cohorts; at a true correlation of 0.6",
        f"it is {told[2]} and {told[3]}, respectively",
    )


def test_every_table_is_computed_from_committed_ones():
    claims = script("experiments/numbers/claims.py")
    for head, rows in claims.HEADS.items():
        assert (PAGE + DETAILS).split(f"{head}\n")[1].split("\n\n")[0].split("\n")[1:] == rows()


def test_ranges_of_confounding_and_of_the_auc():
    table = pd.read_csv(RESULTS / "balance.csv").query("sites == 1")
    called = table.groupby(["older_sd", "a_group", "variables"])[["confounded", "before"]].mean().mul(100).round()
    table = pd.read_csv(RESULTS / "separation.csv")
    inside = ends(table.groupby(["size", "aim"])["inside"].mean(), by=100)
    both = (
        f"{ends(called.loc[0, 'confounded'])} % of randomised studies",
        "in {:.0f} % of studies with 6 variables".format(*called.loc[(0.5, 100), "confounded"]),
        "in {1:.0f} % with 20 variables".format(*called.loc[(0.5, 100), "confounded"]),
        f"Hanley and McNeil's interval does so in {ends(table.groupby('aim')['before'].mean(), by=100)} %",
    )
    before = "called {:.0f}, {:.0f}, {:.0f} and {:.0f} % of studies *confounded* with 1, 2, 6 and 20".format(
        *called.loc[(0, 100), "before"]
    )
    assert not missing(DETAILS, *both, before, f"it does so in {inside} %")
    assert not missing(PAGE, *both, f"the AUC in new people in {inside} % of samples")


def test_what_is_said_of_verdicts_and_counts():
    table = pd.read_csv(RESULTS / "verdicts.csv")
    null, ill = table[table["true"] == 0], table[table["true"] > 0]
    assert {*ill["state"]} == {"reproducible"}
    assert not {*null["state"]} & {"reproducible", "not testable"}
    sites = pd.read_csv(RESULTS / "balance.csv").query("sites == 4").groupby("older_sd")["confounded"].mean()
    assert "{} of 2,000 randomised studies are called *confounded*, and {} of 2,000".format(*percent(sites)) in DETAILS
    trained = pd.read_csv(RESULTS / "linear_start.csv")
    assert not missing(
        PAGE,
        f"None of the {len(null)} cohorts was called *reproducible*; {(null['state'] == 'weak').sum()}, of different",
        f"all {len(ill)} were called *reproducible*",
        f"and in {percent(sites)[1]} with 20 variables at four sites",
        f"concordance ranged from {ends(pd.read_csv(RESULTS / 'demonstration.csv')['concordance'], 3)}",
        f"{trained['left_out'].sum()} of {10 * len(trained):,} repetitions were excluded",
    )


def covered_and_wide(table, by):
    """Return the cells of a row: the coverage and mean width of intervals."""
    means = table.groupby(by)[["inside", "width"]].mean()
    return " | ".join(f"{100 * row.inside:.1f} %, {row.width:.2f}" for row in means.itertuples())


def test_intervals_of_change_and_elsewhere():
    table = pd.read_csv(RESULTS / "true_change.csv")
    for (kind, progression), of in table.groupby(["kind", "progression"]):
        assert f"| {kind}, {'growing' if progression else 'unchanged'} | {covered_and_wide(of, 'noise')} |" in DETAILS
    groups = pd.read_csv(RESULTS / "group_change.csv")
    basic, mild = percent((groups["least_q"] < 0.05).groupby(groups["kind"]).mean(), 1)
    said = f"In {len(groups) // 2} studies of each kind", f"below 0.05 in {basic} (basic) and {mild} (mild)."
    elsewhere = pd.read_csv(RESULTS / "elsewhere.csv").groupby(["what", "size"])
    assert not missing(DETAILS, *said, *(f" | {covered_and_wide(of, 'kind')} |" for _, of in elsewhere))
    inside = table.groupby(["noise", "kind", "seed"])["inside"].mean().groupby("noise").mean()
    assert not missing(
        text_of("docs/how-to/change-between-visits.md"),
        f"[{ends(inside, by=100)} % of true changes]",
        f"were {ends(table.groupby(['kind', 'progression', 'noise'])['width'].mean(), 2)} wide",
    )


ANYBODY = text_of("docs/how-to/anybody.md")


def test_missing_regions_and_strangers():
    table = pd.read_csv(RESULTS / "missing_regions.csv").query("gaps == 0")
    whole = table[table["missing"] == "complete"].set_index("cohort")["concordance"]
    table = table.assign(lost=table["cohort"].map(whole) - table["concordance"])
    for lost, of in table[table["missing"] != "complete"].groupby("missing"):
        sizes = of.groupby("n_controls").agg(mean=("lost", "mean"), most=("lost", "max"), cover=("cover", "mean"))[::-1]
        cells = [f"{own.mean:.3f}; {own.most:.3f} | {100 * own.cover:.1f} %" for own in sizes.itertuples()]
        assert f" | {' | '.join(cells)} |" in DETAILS, lost
    shares = pd.read_csv(RESULTS / "strangers.csv").groupby(["people", "n_controls"])["strangers"].mean()
    flagged, planted = 100 * shares, shares.drop(["controls", "patients", "severest tenth of patients"])
    small, large = ([f"{flagged[who, n]:.1f} %" for who in ("controls", "patients")] for n in (150, 492))
    assert not missing(
        ANYBODY,
        "flagged {} of new controls and {} of new patients".format(*large),
        "flagged {} and {}, respectively".format(*small),
        f"At least {percent([planted.min()])[0]} of the people affected were flagged",
    )


def below(p):
    """Return the shares of p values below 0.025 and 0.05."""
    return percent([(p < 0.025).mean(), (p < 0.05).mean()])


def test_resemblance():
    told = {
        ("", "enigma", 2.5): "ENIGMA's maps, at most 2.5 sd at severity 1",
        ("", "enigma", 1.5): "ENIGMA's maps, at most 1.5 sd",
        ("", "unrelated", 2.5): "random smooth maps, 2.5 sd",
        ("", "unrelated, no people", 0.0): "random smooth maps themselves, without people",
        ("_large", "enigma", 2.5): "ENIGMA's maps, 500 + 500 people, 2.5 sd",
        ("_large", "unrelated", 2.5): "random smooth maps, 500 + 500 people, 2.5 sd",
        ("_single", "enigma", 2.5): "one disorder per cohort: ENIGMA's maps, 2.5 sd",
        ("_single", "enigma", 1.5): "one disorder per cohort: ENIGMA's maps, 1.5 sd",
        ("_single", "unrelated", 2.5): "one per cohort: random smooth maps, 2.5 sd",
        ("_single", "unrelated", 1.5): "one per cohort: random smooth maps, 1.5 sd",
    }
    shares = {}
    for (name, kind, strength), words in told.items():
        table = pd.read_csv(RESULTS / f"resemblance{name}.csv").query("kind == @kind and strength == @strength")
        shares[name, kind, strength], usual = below(table["p_corrected"])
        assert f"| {words} | {len(table)} | {shares[name, kind, strength]} | {usual} |" in DETAILS
        assert (
            name != "_single"
            or kind != "enigma"
            or (table["true_p_corrected"][table["p_corrected"] < 0.025] < 0.025).all()
        )
    recognised = (
        "{} of patterns made from ENIGMA's maps are recognised if their largest change is 2.5 sd, and {} if it is 1.5 "
        "sd; {} and {} of random smooth maps"
    )
    assert not missing(
        PAGE.split("**What a pattern resembles**")[1].split("\n")[0],
        *(f"{share} " for (name, *_), share in shares.items() if not name),
        recognised.format(*(share for (name, *_), share in shares.items() if name == "_single")),
    )


def test_prognosis():
    table = pd.read_csv(RESULTS / "prognosis.csv")
    held, wrong = percent([table["held"].mean(), (table["p_without_effect"] < 0.05).mean()], 1)
    assert not missing(
        DETAILS,
        f"Of {len(table)} intervals, {held} contain",
        f"{wrong} of {len(table)} tests have p below 0.05",
        f"about {table['n_events'].mean():.0f} events",
    )
    assert not missing(PAGE, f"of {len(table)} intervals, {held} contain", f"p was below 0.05 in {wrong} of tests")


def test_planned_studies_are_as_far_from_new_ones_as_the_page_says():
    found = pd.read_csv(RESULTS / "planning_check.csv")
    away = (found["chance"] - found["new_found"]).abs()
    assert not missing(
        text_of("docs/how-to/plan-a-study.md"),
        f"In {len(found)} comparisons with 40 new studies each",
        f"differed by {away.mean():.2f} on average and by {away.max():.2f} at most",
    )
    first = found.iloc[:9]
    said = chances(*first[["controls", "patients", "regions"]].iloc[0].astype(int))
    assert said["chance"].to_numpy() == pytest.approx(first["chance"].to_numpy(), abs=1e-3)


def test_three_programs():
    for what, of in pd.read_csv(RESULTS / "three_programs_networks.csv").groupby("what"):
        ranges = [ends(of[name], 2) for name in ("icc", "rank", "maps")]
        assert not missing(DETAILS + PAGE, f"| {' | '.join(ranges)} |", f" and {ranges[0]}")
        states = {*of["state_first"], *of["state_second"]}
        assert states == ({"not reproducible", "weak"} if what == "autism" else {"reproducible"})
    said = {"autism": ("patients with autism", 1, 0), "put in": ("identical in each program", 2, 2)}
    for what, of in pd.read_csv(RESULTS / "three_programs.csv").groupby("what"):
        words, n_patterns, n_found = said[what]
        ranges = [ends(of[name], 2).replace("-", "−") for name in ("icc", "rank", "maps")]
        (patients,) = set(of["patients"])
        assert (of["pattern"].max(), set(of["found_first"])) == (n_patterns, {n_found})
        row = f"{words} | {n_patterns} | {patients} | {' | '.join(ranges)} |"
        assert not missing(DETAILS + PAGE, row, f"the ICC is {ranges[0]} ")


def test_chance_at_several_sites():
    shares = pd.read_csv(RESULTS / "chance_and_sites.csv").set_index("kind")["p"].le(0.05).groupby("kind").mean()
    chance = f"{100 * shares['even']:.0f} to {100 * shares['few controls']:.0f} %"
    assert f"p was at most 0.05 in {chance} of tables" in PAGE
    assert f"[{chance}]" in text_of("docs/explanation/anything-to-find.md")
    assert shares["disease"] == 1


def test_severities_by_age():
    cohorts = pd.read_csv(RESULTS / "severity_and_age.csv").query("preset == 'fast'")
    means = cohorts.groupby(["scale", "people"], sort=False).mean(numeric_only=True)
    lower, rank = ({scale: means[name][scale] for scale in ("volumes", "logarithms")} for name in means.columns[-2:])
    assert [f"{value:.2f}" for value in lower["volumes"]] == ["-0.09", "-0.09"]
    true = "{:.2f} and {:.2f}".format(*means["true_with_age"]["volumes"])
    rises = (rank["logarithms"] - rank["volumes"])[["simulated", "real"]]
    assert not missing(
        text_of("docs/explanation/limits.md"),
        f"severities correlate with age (r = −0.09 in both); the true correlations are {true}, respectively",
        "r is {:.2f} and {:.2f}, and concordance is {:.3f} and {:.3f} higher, respectively (".format(
            *lower["logarithms"], *rises
        ),
    )


# Numbers of the tutorial on schizophrenia are those of its tables; the contrast is computed again from the data.


TUTORIAL = text_of("docs/tutorials/schizophrenia.md")
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


def test_verdicts_and_sentences_on_them_are_those_of_the_table():
    verdicts = pd.read_csv(RESULTS / "schizophrenia_verdicts.csv")
    for row in verdicts.itertuples():
        evidence = f"{row.p} | {row.p_spread:.2f} | {row.p_shift} | {row.auc:.2f} | {row.halves:.2f}"
        sizes = f"{row.controls} | {row.patients} | {row.regions}"
        assert f"| {TABLES[row.table]} | {sizes} | {evidence} | {row.verdict} |" in TUTORIAL
    assert {*verdicts["p"], *verdicts["p_shift"]} == {0.005}
    spread = f"p ≥ {verdicts['p_spread'].min():.2f} for spread"
    assert not missing(TUTORIAL, spread, f"agreement {ends(verdicts['halves'], 2)}")


def test_sentences_on_groups_and_regions_are_those_of_the_tables():
    groups = pd.read_csv(RESULTS / "schizophrenia_background.csv").set_index("people")
    everybody = groups.loc["everybody"]
    sexes = percent(everybody[["sex_controls", "sex_patients"]])
    near = groups.loc["matched for sex and head size"]
    assert (near.sex_controls, abs(near.icv_d) < 0.05) == (near.sex_patients, True)
    regions = pd.read_csv(RESULTS / "schizophrenia_regions.csv").set_index("region")
    sure = regions[regions["q"] < 0.05]
    assert sure["effect"].max() < 0
    assert regions["effect"].idxmin() == "lh_S_circular_insula_sup_thickness"
    stated = [name for name in regions.index if name[3:].removesuffix("_thickness") in SCRIPT.FRONTO_INSULAR]
    assert not missing(
        TUTORIAL,
        "({} of the controls and {} of the patients".format(*sexes),
        f"head sizes differ by {everybody.icv_d:.2f} sd",
        f"{len(sure)} of {len(regions)} regions are thinner in patients",
        f"insula (d = {number(regions['effect'].min())})",
        f"{len(sure.index.intersection(stated))} of the {len(stated)} regions in the contrast",
    )


def test_numbers_of_people_needed_are_those_of_the_planning_table():
    def found(n_controls, n_patients, strength):
        table = chances(n_controls, n_patients, 74).set_index(["patterns", "strength"])["chance"]
        return percent(table[[(1, strength), (2, strength)]])

    studies = ((67, 98, 1.0), (160, 160, 1.0), (67, 98, 0.5), (320, 320, 0.5))
    assert not missing(
        TUTORIAL,
        *(
            f"| {sd:g} sd | {controls} | {patients} | {' | '.join(found(controls, patients, sd))} |"
            for controls, patients, sd in studies
        ),
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
    contrasts = pd.DataFrame([row for who, own in people.items() for row in SCRIPT.contrast(own, who)])
    assert not missing(TUTORIAL, *rows_of(contrasts))
    for name, made in (("background", SCRIPT.background(people)), ("regions", SCRIPT.of_regions(table, regions))):
        stored = pd.read_csv(RESULTS / f"schizophrenia_{name}.csv")
        pd.testing.assert_frame_equal(made.round(4), stored, check_dtype=False, atol=2e-4)
