"""Made-up tables of results, and helpers that read figures of them."""

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


def crossed(**levels):
    """Return a table of all combinations, with the last column varying fastest."""
    return pd.MultiIndex.from_product(levels.values(), names=levels).to_frame(index=False)


def named(names, number, other):
    """Return a number of names, adding made-up ones if there are too few."""
    return [names[place] if place < len(names) else f"{other} {place}" for place in range(number)]


def changes(n_patterns=2, n_regions=20, name="region {}"):
    table = crossed(pattern=range(1, n_patterns + 1), region=[name.format(region) for region in range(n_regions)])
    change = np.random.default_rng(1).normal(size=len(table)) * table["pattern"]
    return table.assign(change_sd=change, change_percent=7 * change, spread_sd=0.1)


def selection():
    table = pd.DataFrame([[0.6, 0.2, 0.1], [0.8, 0.7, 0.6], [0.7, 0.6, 0.5]], columns=INDICES)
    return table.assign(
        step=[1000, 2000, 3000], chosen=[False, True, False], n_patterns=3, orthogonality=0.8, n_models=5
    )


def settings(numbers=(2, 3, 4), weights=(0.2, 0.8), chosen=(3, 0.8)):
    """Return two checkpoints per setting, the later its best; agreement falls with distance from the chosen setting."""
    table = crossed(n_patterns=numbers, orthogonality=weights).assign(step=2000, n_models=10, best=True)
    away = (table[["n_patterns", "orthogonality"]] - np.array(chosen)).abs()
    for column, less in zip(INDICES, (0.0, 0.1, 0.2), strict=True):
        known = 0.95 - less - away @ [0.05, 0.1]
        known = known.where((table["n_patterns"] > 1) | (column != INDICES[-1]))
        table = table.assign(
            **{column: known, f"{column}_low": known - 0.03, f"{column}_high": (known + 0.02).clip(0, 1)}
        )
    table["chosen"] = (away == 0).all(axis=1)
    earlier = table.assign(step=1000, best=False, chosen=False, **{INDICES[0]: 0.55})
    return pd.concat([table, earlier], ignore_index=True)


def associations(n_patterns=2, n_variables=8, n_categorical=2, names=ODD_NAMES):
    rng = np.random.default_rng(2)
    table = crossed(variable=named(names, n_variables, "score"), pattern=range(1, n_patterns + 1))
    categorical = table.index >= n_patterns * (n_variables - n_categorical)
    value = np.where(categorical, rng.uniform(0, 0.4, len(table)), rng.uniform(-0.6, 0.6, len(table)))
    return table.assign(
        people="patients",
        level=np.nan,
        n=120,
        kind=np.where(categorical, "categorical", "continuous"),
        coefficient=value,
        low=value - 0.1,
        high=value + 0.1,
        q=rng.uniform(0, 0.1, len(table)),
    )


def doses(n_patterns=2, n_regions=6, names=ODD_NAMES):
    table = crossed(pattern=range(1, n_patterns + 1), region=named(names, n_regions, "region"), step=range(5))
    severity = 0.1 + 0.2 * table["step"]
    # Lines with nearly the same end are the hard case for placing their names.
    mean = -severity * (1 + 0.01 * (table.index // 5 % n_regions)) * table["pattern"]
    return table.assign(
        severity=severity,
        low=severity - 0.1,
        high=severity + 0.1,
        n=100 - 20 * table["step"],
        mean=mean,
        mean_low=mean - 0.1,
        mean_high=mean + 0.1,
    )


def subgroups(n_patterns=2, n_regions=20, names=ODD_NAMES):
    """Return effects and subgroup sizes: the high subgroup of pattern 2 is too small to be tested."""
    levels = {"pattern": range(1, n_patterns + 1), "level": ["low", "middle", "high"]}
    sizes = crossed(**levels).eval("used = pattern != 2 or level != 'high'")
    effects = crossed(**levels, region=named(names, n_regions, "region")).merge(sizes).query("used")
    rng = np.random.default_rng(3)
    effect, q = rng.normal(size=len(effects)), rng.uniform(0, 0.1, len(effects))
    return (
        effects.assign(effect=effect, low=effect - 0.3, high=effect + 0.3, q=q),
        sizes.assign(n=sizes["used"].map({True: 1234, False: 3})),
    )


def rates(n_patterns=2, n_people=40, groups=("control", "patient", "other")):
    """Return change per year, of people and of groups."""
    patterns, group = range(1, n_patterns + 1), np.repeat(groups, n_people)
    changes = pd.DataFrame(0.05 * np.random.default_rng(4).normal(size=(len(group), n_patterns)), columns=patterns)
    summary = changes.groupby(group).mean().rename_axis("group").reset_index()
    summary = summary.melt("group", var_name="pattern", value_name="mean")
    summary = summary.assign(n=n_people, low=summary["mean"] - 0.02, high=summary["mean"] + 0.02, p=0.1)
    return changes.set_axis([f"r{pattern}_per_year" for pattern in patterns], axis=1).assign(group=group), summary


def distances(n_people=300, factor=2.5):
    rng = np.random.default_rng(5)
    groups, distance = rng.choice(["control", "patient", "other"], n_people), rng.uniform(2, 4, n_people)
    distance[:3] *= factor
    return pd.DataFrame(
        {"group": groups, "far_in": np.repeat(["distance", ""], [3, n_people - 3]), "distance": distance}
    )


def texts_on_page(figure):
    """Return the text and box of every label, once the layout has settled."""
    renderer = FigureCanvasAgg(figure).get_renderer()
    figure.draw(renderer)
    hidden = set()
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            low, high = sorted(axis.get_view_interval())
            for tick in axis.get_major_ticks() + axis.get_minor_ticks():
                hidden |= {tick.label2} | (set() if low <= tick.get_loc() <= high else {tick.label1})
    written = [text for text in figure.findobj(Text) if text not in hidden and text.get_visible()]
    # The box of an annotation without the line to its point.
    return [(text.get_text(), Text.get_window_extent(text, renderer)) for text in written if text.get_text().strip()]


def labels_of(figure):
    return [text.get_text() for text in figure.legends[0].get_texts()]


def row_names(axes):
    return [tick.get_text() for tick in axes.get_yticklabels()]


def marks(axes, most=np.inf):
    """Return the marks drawn in rows of at most `most`: x, y, marker, whether hollow, and size."""
    lines = [line for line in axes.lines if line.get_linestyle() == "None" and len(line.get_xdata()) <= most]
    looks = [(one.get_marker(), one.get_markerfacecolor() in ("white", "none"), one.get_markersize()) for one in lines]
    return [(float(x), float(y), *look) for line, look in zip(lines, looks, strict=True) for x, y in line.get_xydata()]
