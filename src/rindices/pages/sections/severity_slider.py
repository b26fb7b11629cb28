"""The section with a slider: what each pattern does to the brain and to its regions as its severity grows."""

from __future__ import annotations

from itertools import product
from typing import NamedTuple

from markupsafe import Markup

from rindices.pages.elements import script_json
from rindices.pages.run_view import RunView
from rindices.pages.sections.brain_section import has_outlines
from rindices.plots.brain_drawing import draw_brain, measures_of

_MOST_REGIONS = 14  # beside a brain
_BRAIN_WIDTH = 560


class Slide(NamedTuple):
    """A pattern that the slider moves: the brain, which regions each of its pieces shows, and where colours end."""

    pattern: int
    measure: str
    svg: Markup = Markup("")
    pieces: tuple[tuple[str, ...], ...] = ()
    limit: float = 0.0


def slider_section(view: RunView) -> dict[str, object]:
    """Return each pattern at severity 1, and the change of each region at each severity, for the page's script."""
    table = view.analyses.get("severities", view.results.patterns.assign(severity=1.0))
    table, slides = table[table["severity"] > 0], _slides(view)
    doses: dict[str, dict[str, dict[str, float]]] = {}
    for row in table.to_dict("records"):
        regions = doses.setdefault(str(row["pattern"]), {})
        regions.setdefault(str(row["region"]), {})[f"{row['severity']:g}"] = round(float(row["change_sd"]), 4)
    ends = [min(0.0, float(table["change_sd"].min())), max(0.0, float(table["change_sd"].max()))]
    brains = [{"pieces": one.pieces, "limit": one.limit} for one in slides]
    data = {"patterns": doses, "names": view.region_names, "ends": ends, "shown": _MOST_REGIONS, "brains": brains}
    return {"slides": slides, "doses": script_json(data)}


def _slides(view: RunView) -> list[Slide]:
    patterns = range(1, view.summary.n_patterns + 1)
    table = view.analyses.get("severities", view.results.patterns)
    if not has_outlines(view.run):
        return [Slide(pattern, "") for pattern in patterns]
    slides = []
    for pattern, measure in product(patterns, measures_of(table["region"])):
        drawing = draw_brain(table, pattern, (1.0,), measure=measure, per_line=5, width=_BRAIN_WIDTH, bare=True)
        if drawing is not None:
            svg = Markup(drawing.svg(f"slide{pattern}{measure}"))
            slides.append(Slide(pattern, measure, svg, tuple(drawing.piece_names), drawing.limit))
    return slides
