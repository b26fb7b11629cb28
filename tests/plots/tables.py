"""Made-up tables of results, and what is written on a figure of them."""

import numpy as np
import pandas as pd
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.text import Text

INDICES = ("pattern_agreement", "dimension_correlation", "difference_correlation")
LONG = "Left posterior parahippocampal gyrus v1"
ODD_NAMES = ["lh_G_and_S_cingul-Mid-Post_volume", "<script>alert(1)</script>", "$x$", "a$b", "&amp;", "lHip", "rHip"]


def people(n_patterns=3, n_controls=30, n_patients=50, n_other=0):
    rng = np.random.default_rng(0)
    groups = ["control"] * n_controls + ["patient"] * n_patients + ["other"] * n_other
    scores = {f"r{place}": rng.uniform(size=len(groups)) for place in range(1, n_patterns + 1)}
    return pd.DataFrame({"group": groups, **scores, **{f"{name}_sd": 0.01 for name in scores}})


def changes(n_patterns=2, n_regions=20, name="region {}"):
    rng = np.random.default_rng(1)
    rows = [
        {"region": name.format(region), "pattern": pattern, "change_sd": rng.normal() * pattern}
        for pattern in range(1, n_patterns + 1)
        for region in range(n_regions)
    ]
    table = pd.DataFrame(rows)
    return table.assign(change_percent=table["change_sd"] * 7.0, spread_sd=0.1)


def selection(n_patterns=3):
    table = pd.DataFrame({"n_patterns": n_patterns, "orthogonality": 0.8, "step": [1000, 2000, 3000], "n_models": 5})
    table["pattern_agreement"] = [0.6, 0.8, 0.7]
    table["dimension_correlation"] = [0.2, 0.7, 0.6]
    table["difference_correlation"] = [0.1, 0.6, 0.5] if n_patterns > 1 else np.nan
    return table.assign(chosen=[False, True, False])


def settings(numbers=(2, 3, 4), weights=(0.2, 0.8), chosen=(3, 0.8), n_models=10):
    """Two checkpoints for each setting, the second its best; agreement falls with the distance from the chosen."""
    rows = []
    for number in numbers:
        for weight in weights:
            value = 0.95 - 0.05 * abs(number - chosen[0]) - 0.1 * abs(weight - chosen[1])
            row = {
                "n_patterns": number,
                "orthogonality": weight,
                "step": 2000,
                "n_models": n_models,
                "best": True,
                "chosen": (number, weight) == chosen,
            }
            for column, known in zip(
                INDICES, (value, value - 0.1, np.nan if number == 1 else value - 0.2), strict=True
            ):
                row |= {column: known, f"{column}_low": known - 0.03, f"{column}_high": min(known + 0.02, 1)}
            rows += [row, {**row, "step": 1000, "best": False, "chosen": False, INDICES[0]: 0.55}]
    return pd.DataFrame(rows)


def associations(n_patterns=2, n_variables=8, n_categorical=2, names=ODD_NAMES):
    rng, rows = np.random.default_rng(2), []
    for place in range(n_variables):
        categorical = place >= n_variables - n_categorical
        name = names[place] if place < len(names) else f"score {place}"
        for pattern in range(1, n_patterns + 1):
            value = rng.uniform(0, 0.4) if categorical else rng.uniform(-0.6, 0.6)
            row = {
                "people": "patients",
                "pattern": pattern,
                "variable": name,
                "level": np.nan,
                "n": 120,
                "kind": "categorical" if categorical else "continuous",
                "coefficient": value,
            }
            rows.append(row | {"low": value - 0.1, "high": value + 0.1, "q": rng.uniform(0, 0.1)})
    return pd.DataFrame(rows)


def doses(n_patterns=2, n_regions=6, names=ODD_NAMES):
    rows = []
    for pattern in range(1, n_patterns + 1):
        for place in range(n_regions):
            name = names[place] if place < len(names) else f"region {place}"
            for step in range(5):
                severity = 0.1 + 0.2 * step
                # Lines that end nearly together are the hard case for their names.
                mean = -severity * (1 + 0.01 * place) * pattern
                row = {
                    "pattern": pattern,
                    "region": name,
                    "low": 0.2 * step,
                    "high": 0.2 * step + 0.2,
                    "n": 100 - 20 * step,
                    "severity": severity,
                    "mean": mean,
                }
                rows.append(row | {"mean_low": mean - 0.1, "mean_high": mean + 0.1})
    return pd.DataFrame(rows)


def subgroups(n_patterns=2, n_regions=20, names=ODD_NAMES):
    """Effects, and sizes of the subgroups: the high one of pattern 2 is too small to be tested."""
    rng = np.random.default_rng(3)
    regions = [names[place] if place < len(names) else f"region {place}" for place in range(n_regions)]
    effects, sizes = [], []
    for pattern in range(1, n_patterns + 1):
        for level in ("low", "middle", "high"):
            used = (pattern, level) != (2, "high")
            sizes.append({"pattern": pattern, "level": level, "n": 1234 if used else 3, "used": used})
            for region in regions if used else ():
                row = {"pattern": pattern, "level": level, "region": region, "effect": rng.normal()}
                effects.append(
                    row | {"low": row["effect"] - 0.3, "high": row["effect"] + 0.3, "q": rng.uniform(0, 0.1)}
                )
    return pd.DataFrame(effects), pd.DataFrame(sizes)


def rates(n_patterns=2, n_people=40, groups=("control", "patient", "other")):
    """Change per year of people and of groups."""
    rng, table = np.random.default_rng(4), pd.DataFrame({"group": np.repeat(groups, n_people)})
    summary = []
    for pattern in range(1, n_patterns + 1):
        table[f"r{pattern}_per_year"] = rng.normal(size=len(table)) * 0.05
        for group, values in table.groupby("group")[f"r{pattern}_per_year"]:
            row = {"group": group, "pattern": pattern, "n": n_people, "mean": values.mean()}
            summary.append(row | {"low": values.mean() - 0.02, "high": values.mean() + 0.02, "p": 0.1})
    return table, pd.DataFrame(summary)


def distances(n_people=300, factor=2.5):
    rng = np.random.default_rng(5)
    table = pd.DataFrame({"group": rng.choice(["control", "patient", "other"], n_people), "far_in": ""})
    table["distance"] = rng.uniform(2, 4, n_people)
    table.loc[:2, "distance"] *= factor
    table.loc[:2, "far_in"] = "distance"
    return table


def texts_on_page(figure):
    """Text and box of everything that is written, after the layout has settled."""
    renderer = FigureCanvasAgg(figure).get_renderer()
    figure.draw(renderer)
    hidden = set()
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            low, high = sorted(axis.get_view_interval())
            for tick in axis.get_major_ticks() + axis.get_minor_ticks():
                hidden |= {tick.label2} | (set() if low <= tick.get_loc() <= high else {tick.label1})
    written = [text for text in figure.findobj(Text) if text not in hidden and text.get_visible()]
    # Without the line that leads from an annotation to its point.
    return [(text.get_text(), Text.get_window_extent(text, renderer)) for text in written if text.get_text().strip()]


def labels_of(figure):
    return [text.get_text() for text in figure.legends[0].get_texts()]


def row_names(axes):
    return [tick.get_text() for tick in axes.get_yticklabels()]


def marks(axes):
    """Return every mark drawn by itself or in a row of marks: across, up, marker, and whether hollow."""
    found = []
    for line in axes.lines:
        if line.get_linestyle() == "None":
            hollow = line.get_markerfacecolor() == "white"
            points = zip(np.atleast_1d(line.get_xdata()), np.atleast_1d(line.get_ydata()), strict=True)
            found += [(float(x), float(y), line.get_marker(), hollow) for x, y in points]
    return found
