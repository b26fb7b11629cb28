"""Every number in a sentence of a report is in the run folder, and the verdict determines which sentences appear.

There are eight kinds of studies. A sentence with a number that no line of `CLAIMS` covers fails the test: a new one
needs a line that says where the number comes from.
"""

import html
import re
from pathlib import Path

import numpy as np
from scipy.stats import mannwhitneyu

import rindices
from rindices.judging.spectrum import N_PERMUTATIONS
from rindices.judging.verdict_and_separation import _FOLDS
from rindices.presets import Schedule
from rindices.training.starts import PATIENTS
from tests.sentences.conftest import N_REGIONS, REGIONS

PAGES = Path(rindices.__file__).parent / "pages"
N = r"(−?\d+(?:,\d{3})*(?:\.\d+)?)"
NUMBER = re.compile(r"(?<![\w.−-])[−-]?\d[\d,]*(?:\.\d+)?(?!\w)")
# Tables, pictures and lists of settings contain no sentences.
NO_PROSE = re.compile(r"<(script|style|svg|table|pre|code|select|nav)\b.*?</\1>|<p>References</p>.*?</ul>", re.DOTALL)
ABOUT_PATTERNS = re.compile(
    r"Pattern \d|pattern \d|associated with|have this pattern|associations ha|median severity"
    r"|There may be more|is called reliable"
)


def prose(page):
    """Return the sentences of a page, one paragraph per line."""
    text = re.sub(r"</(?:p|li|dd|dt|h\d|figcaption|summary|caption|div|header)>", "\n", NO_PROSE.sub(" ", page))
    lines = (" ".join(line.split()) for line in html.unescape(re.sub("<[^>]*>", "", text)).split("\n"))
    return "\n".join(filter(None, lines))


def without_gates(page):
    """Return a page without what is hidden behind “Show anyway”."""
    kept, hidden = [], []  # for each open element, whether it is hidden
    for part in re.split(r"(</?details\b[^>]*>)", page):
        if part.startswith("<details"):
            hidden.append('class="gate"' in part or any(hidden))
        if not any(hidden):
            kept.append(part)
        if part == "</details>":
            hidden.pop()
    return "".join(kept)


def shown(value, digits=2):
    return "–" if value is None or np.isnan(value) else f"{value:.{digits}f}".replace("-", "−")


def p_words(value):
    return "< 0.001" if value < 0.001 else f"= {value:.3f}" if value < 0.995 else "= 1.000"


def counted(number, one):
    return f"{number} {one}{'' if number == 1 else 's'}"


def groups_of(told):
    people = told.people
    return [int((people["group"] == group).sum()) for group in ("patient", "control")]


def n_patterns(told):
    return int(told.table("patterns")["pattern"].nunique())


def headline(told):
    basis = told.summary["search"]["basis"]
    again = (told.summary.get("evidence") or {}).get("found_again")
    supported = again is None or max(again, 1) >= n_patterns(told)
    more = "; there may be more" if basis in ("counted", "fit", "agreement") and not told.folded and supported else ""
    words = {
        "counted": "estimated before training",
        "fit": "chosen by fit and agreement",
        "unsupported": "that the data do not support",
        "agreement": "chosen by agreement alone",
    }
    patients, controls = groups_of(told)
    return [patients, controls, N_REGIONS, counted(n_patterns(told), "disease pattern"), words[basis] + more]


def region_differences(told):
    effects = told.table("analysis/group_effects")
    clear = effects["effect"][effects["q"] < 0.05]
    below = round(100 * (effects["effect"] < 0).mean())
    return [*groups_of(told)[::-1], int((clear < 0).sum()), int((clear > 0).sum()), len(effects), below]


def no_differences(told):
    controls, patients, smaller, larger, n_regions, below = region_differences(told)
    assert smaller == larger == 0
    return [n_regions, patients, controls, below]


def cards(told):
    """Return the statements of each pattern's card, in order."""
    people, rows = told.people, []
    patients, controls = (people[people["group"] == group] for group in ("patient", "control"))
    above = {k: patients[f"severity{k}"] > told.summary["reference"][k - 1][2] for k in range(1, n_patterns(told) + 1)}
    for k, own in above.items():
        pair = patients[f"severity{k}"], controls[f"severity{k}"]
        higher = mannwhitneyu(*pair).statistic / (len(patients) * len(controls))
        said = [shown(pair[0].median()), shown(pair[1].median()), f"{100 * higher:.0f}", round(100 * own.mean())]
        shares = {other: (more[own].mean(), more.mean()) for other, more in above.items() if other != k}
        others = [
            f"{round(100 * here)} % also have pattern {other} (versus {round(100 * all_of)} % of all patients)"
            for other, (here, all_of) in shares.items()
        ]
        rows.append([*said, f" Of these patients, {', '.join(others)}." if others else "", _related(told, k)])
    return rows


def _related(told, k):
    table = told.table("analysis/associations")
    row = table[(table["people"] == "patients") & (table["pattern"] == k)].iloc[0]
    if row["q"] >= 0.05:
        return "not clearly associated with any clinical variable"
    return f"associated with memory (r = {shown(row['coefficient'])}, q {p_words(row['q'])})"


def strongest(told):
    """Return the range of the changes that the first sentence of each card names."""
    found = []
    for _, own in told.table("patterns").groupby("pattern"):
        rows = own.sort_values("change_sd", key=abs, ascending=False, kind="stable").head(6)
        rows = rows["change_sd"][rows["change_sd"].abs() >= 0.5 * rows["change_sd"].abs().max()]
        for part in (rows[rows < 0], rows[rows > 0]):
            if len(part):
                both = [shown(part.min()), shown(part.max())]
                found.append([both[0] if len(part) == 1 else ("–" if part.min() > 0 else " to ").join(both)])
    return found


def unit(told):
    table = told.table("patterns")
    largest = table.loc[table["change_sd"].abs().groupby(table["pattern"]).idxmax()]
    changes = (shown(change / 10) if change < 0 else f"+{change / 10:.2f}" for change in largest["change_sd"])
    rows = zip(changes, largest["region"], largest["pattern"], strict=True)
    return [" and ".join(f"{change} control SDs in {region} (pattern {k})" for change, region, k in rows)]


def controls_average(told):
    means = told.people.query("group == 'control'").filter(regex=r"^severity\d+$").mean()
    return [" and ".join(shown(mean) + f" (pattern {k})" * (len(means) > 1) for k, mean in enumerate(means, 1))]


AGREEMENTS = ("pattern_agreement", "dimension_correlation", "difference_correlation")


def reason(told):
    return [counted(n_patterns(told), "pattern"), shown(told.summary["agreement"]["pattern_agreement"], 3)]


def scan_noise(told):
    years = told.table("r_indices").query("group == 'control'").groupby("participant_id")["years"]
    noise = " and ".join(
        f"{sd:.3f} (pattern {k})" for k, sd in enumerate(told.table("analysis/scan_noise")["sd"], start=1)
    )
    return [int((years.size() > 1).sum()), f"{years.agg(np.ptp).max():.1f}", noise]


def controls_that_changed(told):
    own = told.table("analysis/change").query("group == 'control'")
    called = (own.filter(regex="_reliable$") != 0).sum()
    return [" and ".join(f"{n} of {len(own)} (pattern {k})" for k, n in enumerate(called, start=1))]


def remarks(told):
    found = told.table("analysis/group_check")["remark"].dropna().unique()
    return [[remark.replace("= -", "= −")] for remark in found if remark.strip()]


def uncertainty(told):
    """Return how many times larger the squared error of age and sex effects is in patients than in controls."""
    ages, patient = told.given["age"], (told.given["diagnosis"] == "AD").to_numpy()
    design = np.column_stack([np.ones(len(ages)), ages, told.given["sex"] == "M"]).astype(float)
    leverage = (design @ np.linalg.inv(design[~patient].T @ design[~patient]) * design).sum(axis=1)
    return f"{leverage[patient].mean() / leverage[~patient].mean():.1f}"


def standardised(first, second):
    return (first.mean() - second.mean()) / np.sqrt((first.var() + second.var()) / 2)


# A sentence and its values according to the folder: one list per occurrence, or one list for all.
CLAIMS = [
    (
        rf"This run compares {N} patients \(AD\) with {N} controls \(CN\) in {N} regions, learns (.*?) \(a number "
        r"(.*?)\)",
        headline,
    ),
    (
        rf"Models fitted to two separate halves of the sample rank {N} of 100 pairs of patients in the same "
        rf"order; chance is 50, and with permuted groups the number is at most {N}\. .*?differ \(p = {N}, permutation "
        rf"test\)",
        lambda told: [
            *(f"{100 * told.summary['evidence'][name]:.0f}" for name in ("halves", "halves_chance")),
            f"{told.summary['evidence']['p']:.2g}",
        ],
    ),
    (
        rf"On average, two repetitions agree on {N} of 100 pairs\.",
        lambda told: [f"{100 * told.summary['evidence']['repetitions']:.0f}"],
    ),
    (
        rf"At least {N} patterns? (?:is|are) reproducible",
        lambda told: [min(n_patterns(told), max(1, told.summary["evidence"]["found_again"]))],
    ),
    (
        rf"randomly assigned groups of the same people \(p = {N}\).*AUC of about {N} or less "
        rf"and patients vary less than {N} times",
        lambda told: [
            f"{told.summary['evidence'][name]:{form}}"
            for name, form in (("p", ".2g"), ("detectable_auc", ".2f"), ("detectable_ratio", ".1f"))
        ],
    ),
    (
        rf"Compared with {N} controls, {N} patients have (?:clearly smaller values in (?P<s>\d+))?(?: and )?(?:clearly "
        rf"larger values in (?P<l>\d+))? of {N} regions \(q below 0\.05\)\. The patients' mean is below that of the "
        rf"controls in {N} %",
        region_differences,
    ),
    (
        rf"In none of the {N} regions do the {N} patients clearly differ from the {N} controls \(no q below 0\.05\)\. "
        rf"The patients' mean is below that of the controls in {N} %",
        no_differences,
    ),
    (
        rf"AUC for patients versus controls (?:was|is) {N} \(95 % interval {N} to {N}",
        lambda told: [shown(told.summary["separation"][name]) for name in ("auc", "low", "high")],
    ),
    (
        rf"The median severity is {N} in patients and {N} in controls; in {N} % of all pairs of a patient and a "
        rf"control, the patient has the higher severity[^.]*\. {N} % of the patients have this pattern, which means "
        rf"that their "
        r"severity exceeds that of 95 % of controls\.( Of these patients, .*?\.)? In patients, the severity is ((?:not "
        r"clearly )?associated with .*?)\.\n",
        cards,
    ),
    (  # under verdicts that assign patterns to nobody
        rf"The median severity is {N} in patients and {N} in controls; in {N} % of all pairs of a patient and a "
        rf"control, "
        r"the patient has the higher severity[^.]*\. In patients, the severity is ((?:not clearly )?associated with "
        r".*?)\.\n",
        lambda told: [[*row[:3], row[-1]] for row in cards(told)],
    ),
    (rf"Pattern \d\n{N} % of patients\n", lambda told: [[row[3]] for row in cards(told)]),
    (
        rf"(None|\d+) of {N} associations ha(?:s|ve) q below",
        lambda told: [
            [int((own["q"] < 0.05).sum()) or "None", len(own)]
            for _, own in told.table("analysis/associations").groupby("people", sort=False)
        ],
    ),
    (r"\(((?:−?\d\.\d\d(?: to |–)?)+) control SDs at severity 1\)", strongest),
    (
        rf"in {N} permutations of the group labels: joint p ([<=] [\d.]+), with p ([<=] [\d.]+) for greater variation "
        rf"among patients \(spread\) and p ([<=] [\d.]+) for a difference in means \(shift\)\. Patients vary "
        rf"more than expected by chance in {N} directions?, and held-out patients vary more than held-out controls in "
        rf"{N} "
        r"directions?\.",
        lambda told: [
            N_PERMUTATIONS,
            *(p_words(told.summary["evidence"][name]) for name in ("p", "p_spread", "p_shift")),
            *(told.summary["evidence"][name] for name in ("directions", "found_again")),
        ],
    ),
    (
        rf"non-overlapping halves of the sample is {N} \(0\.5 is chance; with permuted groups, it is at most {N}\)\. "
        rf"The agreement between repetitions is {N}\. The agreement between the consensus of the repetitions and a "
        rf"linear model of the whole sample is {N}\.",
        lambda told: [
            shown(told.summary["evidence"][name], 3)
            for name in ("halves", "halves_chance", "repetitions", "with_linear")
        ],
    ),
    (
        rf"The table contained {N} (?:people, of whom|rows, of which) {N} were used\.",
        lambda told: [len(told.table("people"))] * 2,
    ),
    (r"the mean severity of the controls is (.*?);", controls_average),
    (r"the change per 0\.1 increase in severity, which is (.*?)\.\n", unit),
    (
        r"its median over all people is (.*?)\. It",
        lambda told: [
            " and ".join(
                f"{told.table('r_indices')[f'r{k}_sd'].median():.3f} (r{k})" for k in range(1, n_patterns(told) + 1)
            )
        ],
    ),
    (
        rf"The agreement indices below are based on {N} repetitions, each with its own",
        lambda told: [told.summary["repetitions"]],
    ),
    (
        rf"(\d+ patterns?): no other number fits the patients clearly better, and the agreement between repetitions is "
        rf"{N}\.",
        reason,
    ),
    (rf"(\d+ patterns?): patients and controls differ no more than expected by chance.*?repetitions is {N}\.", reason),
    (
        rf"(\d+ patterns?): held-out patients also vary more than held-out controls in {N} directions?",
        lambda told: [counted(n_patterns(told), "pattern"), told.summary["evidence"]["found_again"]],
    ),
    (rf"The table contained {N} (?:people|scans)", lambda told: [len(told.table("people"))]),
    (
        rf"comprised {N} controls \(CN\) and {N} patients \(AD\), described by {N} regional",
        lambda told: [*reversed(groups_of(told)), N_REGIONS],
    ),
    (
        rf"{N} linear models, without networks \(the “linear” preset of rindices\), each fitted to (.*?) of the "
        rf"controls and (.*?) of the patients \(seed {N}\)",
        lambda told: [
            told.summary["repetitions"],
            {5: "four fifths"}[Schedule(0, 0).folds],
            {0.9: "nine tenths"}[PATIENTS],
            told.summary["seed"],
        ],
    ),
    (
        rf"patients varied more than controls in {N} directions?\.",
        lambda told: [told.summary["evidence"]["found_again"]],
    ),
    (
        rf"number of patterns, {N}, was chosen from ([\d, and]+) by",
        lambda told: [
            n_patterns(told),
            " and ".join(str(number) for number in sorted(told.table("selection")["n_patterns"].unique())),
        ],
    ),
    (
        r"models with ([\d, and]+) patterns? were trained, and those with (\d+) are reported",
        lambda told: [
            " and ".join(str(number) for number in sorted(told.table("selection")["n_patterns"].unique())),
            n_patterns(told),
        ],
    ),
    (
        rf"averaged over {N} of {N} repetitions",
        lambda told: [told.summary["members_used"], told.summary["repetitions"]],
    ),
    (
        rf"{N} repetitions were trained and {N} used",
        lambda told: [told.summary[k] for k in ("repetitions", "members_used")],
    ),
    (
        r"pattern agreement of (\S+), a dimension correlation of (\S+) and a difference correlation of (\S+)\.(?: |\n)",
        lambda told: [shown(told.summary["agreement"][name], 3) for name in AGREEMENTS],
    ),
    (
        r"pattern agreement of (\S+) and a dimension correlation of (\S+)\.(?: |\n)",
        lambda told: [shown(told.summary["agreement"][name], 3) for name in AGREEMENTS[:2]],
    ),
    (rf"compared with their values in {N} permutations of ", lambda told: [N_PERMUTATIONS]),
    (
        rf"Missing regional measures of {N} people were imputed",
        lambda told: [int(told.table("r_indices")["flags"].str.contains("missing", na=False).sum())],
    ),
    (r"\(joint p ([<=] [\d.]+)\)", lambda told: [p_words(told.summary["evidence"]["p"])]),
    (
        rf"ranked in the same order was {N} \(0.5 is chance; at most {N} with permuted",
        lambda told: [shown(told.summary["evidence"][name], 3) for name in ("halves", "halves_chance")],
    ),
    (rf"{N} % intervals contain the severities", lambda told: [f"{100 * told.summary['level']:g}"]),
    (r"refitted in each of (\w+) folds", lambda told: [{10: "ten"}[_FOLDS]]),
    (
        rf"was below {N}, between {N} and {N}, or above {N}, and whose other severities were all below {N}",
        lambda told: [(limits := told.summary["subgroup_limits"])[0], *limits, limits[1], limits[0]],
    ),
    (
        rf"was below {N}, between {N} and {N}, or above {N}, were",
        lambda told: [(limits := told.summary["subgroup_limits"])[0], *limits, limits[1]],
    ),
    (r"rindices [\d.]+ \(python [\d.]+, jax [\d.]+\)", lambda told: []),
    (rf"This cohort is small \({N} controls and {N} patients", lambda told: [*reversed(groups_of(told))]),
    (r"Every setting was trained in full: (\d+) models\.", lambda told: [told.summary["search"]["models_trained"]]),
    (
        rf"{N} people had at least two visits, over a median of {N} years",
        lambda told: [len(told.table("analysis/change")), f"{told.table('analysis/change')['years'].median():.1f}"],
    ),
    (
        rf"estimated from {N} controls with repeated visits within {N} years\. It corresponds to a standard "
        r"deviation in severity of (.*?)\. A",
        scan_noise,
    ),
    (rf"given scan noise estimated from {N} controls", lambda told: scan_noise(told)[:1]),
    (rf"called reliable if its {N} % interval", lambda told: [f"{100 * told.summary['level']:g}"]),
    (rf"The {N} % interval of a person's change", lambda told: [f"{100 * told.summary['level']:g}"]),
    (r"Among the controls, (.*?) are classified as changed", controls_that_changed),
    (
        rf"R-indices: {N} patterns? in {N} patients",
        lambda told: [n_patterns(told), groups_of(told)[0]],
    ),
    (r"report · (\d{4}-\d\d-\d\d)", lambda told: [told.summary["finished"]]),
    (r"(In (?:patients|controls),? [^\n]*?\(r = [^\n]*)", remarks),
    (
        rf"In {N} of {N} patients, age lies outside the controls' range",
        lambda told: [int((told.ages("AD") > told.ages("CN").max()).sum()), groups_of(told)[0]],
    ),
    (r"covariates are ([\d.]+) times as uncertain", lambda told: [uncertainty(told)]),
    (
        r"differ in age \((.*?) versus (.*?), difference ([\d.]+) sd\)",
        lambda told: [
            *(f"{told.ages(name).mean():.1f} ± {told.ages(name).std():.1f}" for name in ("AD", "CN")),
            f"{standardised(told.ages('AD'), told.ages('CN')):.2f}",
        ],
    ),
    (
        rf"The table has {N} rows with missing, impossible or unusual values",
        lambda told: [int((told.table("people")["flags"].notna()).sum())],
    ),
    (
        rf"{N} rows lack values for some regions \(roi01, .* and {N} more\), with at most {N} of {N} regions missing",
        lambda told: [(gaps := told.given[REGIONS].isna().sum(axis=1)).gt(0).sum(), 6, gaps.max(), 12],
    ),
    (
        r"(\d+) p\w+ (?:is an|are) outliers?, possibly because of errors in the table: rows? ([\d, ]+)\.",
        lambda told: [
            int(told.table("people")["far_in"].count()),
            ", ".join(str(row + 2) for row in told.table("people")["far_in"].dropna().index),
        ],
    ),
]


def literal_numbers():
    """Return the numbers written in the templates, which are the same in every report."""
    parts = [path.read_text(encoding="utf-8") for path in sorted((PAGES / "templates").glob("*.j2"))]
    parts.append((PAGES / "report.py").read_text(encoding="utf-8").replace("--", " "))
    return {found for part in parts for found in NUMBER.findall(re.sub(r"\{%.*?%\}|%\.?\d*f", " ", part))}


def strayed(told):
    """Compare all claims; return the remaining sentences with a number that is not in a template either."""
    text = prose(told.html)
    for form, expected in CLAIMS:
        said = [list(match.groups("0" if "(?P<s>" in form else "")) for match in re.finditer(form, text)]
        if said:
            held = expected(told)
            rows = held[: len(said)] if held and isinstance(held[0], list) else [held] * len(said)
            assert said == [[str(one) for one in row] for row in rows], form
            text = re.sub(form, " … ", text)
    known = literal_numbers()
    lines = {line: set(NUMBER.findall(line.replace("–", " "))) - known for line in text.split("\n")}
    return [(numbers, line) for line, numbers in lines.items() if numbers]


def test_numbers_in_sentences_are_those_of_the_folder(told):
    assert strayed(told) == []


def test_statements_about_patterns_are_silent_where_the_verdict_is(told):
    open_text = prose(without_gates(told.html))
    methods = re.search("Check this paragraph before you use it.*References as BibTeX", open_text, re.DOTALL)[0]
    assert ("are not interpreted" in methods) is told.folded
    if told.folded:
        assert not ABOUT_PATTERNS.search(open_text)
        assert f"(verdict: {told.summary['verdict']})" in methods
    else:
        assert 'class="gate"' not in told.html
        assert len(ABOUT_PATTERNS.findall(open_text)) > 5


def test_intervals_hold_their_estimate_and_are_possible(told):
    assert told.table("analysis/group_effects").eval("low < effect < high").all()
    table = told.table("analysis/associations").rename(columns={"low": "coefficient_low", "high": "coefficient_high"})
    bounded = [(table, name, -1) for name in ("coefficient", "partial", "beyond")]
    bounded += [(told.table("selection"), name, least) for name, least in zip(AGREEMENTS, (0, -1, -1), strict=True)]
    for whole, name, least in bounded:
        known = whole[whole[f"{name}_low"].notna()]
        assert known.eval(f"{least} <= {name}_low <= {name} <= {name}_high <= 1").all(), name
    for k, (_, _, limit) in enumerate(told.summary["reference"], start=1):
        own = f"severity{k}"
        assert told.people.eval(f"{own}_low < {own}_high and {own}_low <= {own}.clip(0) and {own} <= {own}_high").all()
        above = (told.people.loc[told.people["group"] == "control", own] > limit).mean()
        assert 0 < above < 0.12  # "5 of 100 controls have each"


def test_verdicts_follow_their_numbers(told):
    summary, evidence, state = told.summary, told.summary["evidence"], told.summary["verdict"]
    assert (evidence["p"] > 0.05) is (state == "no difference")
    if state in ("reproducible", "weak", "confounded"):
        assert evidence["halves"] > evidence["halves_chance"]
        assert state == "confounded" or (evidence["halves"] < 0.6) is (state == "weak")
        assert (state == "confounded") is any(row["imbalanced"] for row in summary["balance"])
    expected = {
        "clear": "reproducible",
        "no disease": "no difference",
        "confounded": "confounded",
        "few people": "not reproducible",
        "one pattern": "reproducible",
        "gaps": "reproducible",
    }
    assert expected.get(told.kind, state) == state
