"""The sections of pages; one more is a function that takes a view of a run, a template, and a line in the list."""

from collections.abc import Callable
from typing import NamedTuple

from markupsafe import Markup

from rindices.pages.layout import render
from rindices.pages.run_view import RunView
from rindices.pages.sections.cards_section import cards_section, groups_section
from rindices.pages.sections.clinical_section import associations_section, change_section, prognosis_section
from rindices.pages.sections.methods_section import methods_section, settings_section
from rindices.pages.sections.patterns_section import (
    dose_section,
    resemblance_section,
    subgroups_section,
    voxelwise_section,
)
from rindices.pages.sections.people_section import (
    correlation_section,
    explorer_section,
    people_section,
    reading_section,
    recovery_section,
)
from rindices.pages.sections.verdict_section import (
    agreement_section,
    repetitions_section,
    search_section,
    verdict_section,
)


class Section(NamedTuple):
    """A section of a page.

    Attributes
    ----------
    name
        Of its template and of its place in the page.
    layer
        Where it stands: in the result, the checks or the details.
    title
        Above it.
    contents
        What its template shows as ``data``; nothing where it is left out.
    """

    name: str
    layer: str
    title: str
    contents: Callable[[RunView], dict[str, object] | None]


SECTIONS = (
    Section("groups", "difference", "", groups_section),
    Section("cards", "result", "", cards_section),
    Section("explorer", "result", "People", explorer_section),
    Section("associations", "result", "Clinical variables", associations_section),
    Section("resemblance", "result", "What the patterns resemble", resemblance_section),
    Section("prognosis", "result", "Follow-up and prognosis", prognosis_section),
    Section("change", "result", "Change between visits", change_section),
    Section("voxelwise", "result", "Voxel-wise maps", voxelwise_section),
    Section("verdict", "checks", "Is there anything to find?", verdict_section),
    Section("recovery", "checks", "Recovery of the known truth", recovery_section),
    Section("search", "checks", "How many patterns?", search_section),
    Section("people", "checks", "Participants", people_section),
    Section("reading", "details", "How to read {a_measure}", reading_section),
    Section("dose", "details", "Regions by severity", dose_section),
    Section("subgroups", "details", "Subgroups of patients", subgroups_section),
    Section("agreement", "details", "Agreement over training", agreement_section),
    Section("correlation", "details", "Correlation of the patterns", correlation_section),
    Section("methods", "details", "Methods paragraph", methods_section),
    Section("limits", "details", "Limits", lambda _: {}),
    Section("repetitions", "details", "Repetitions used and excluded", repetitions_section),
    Section("glossary", "details", "Glossary", lambda _: {}),
    Section("settings", "details", "Settings and versions", settings_section),
)

LAYERS = {"difference": "Patients against controls", "result": "Patterns", "checks": "Checks", "details": "Details"}


class ShownSection(NamedTuple):
    """A section as a page has it."""

    name: str
    title: str
    html: Markup


class Layer(NamedTuple):
    """One of the layers of a report."""

    name: str
    title: str
    sections: list[ShownSection]


def layers_of(view: RunView) -> list[Layer]:
    """Return the layers of a report in their order, without sections that have nothing to show.

    Of people whom a model was applied to, they come first and the model after them.
    """
    sections = {one.name: one for one in SECTIONS}
    if view.summary.applied:
        sections = {"explorer": sections["explorer"]} | sections
        sections["cards"] = sections["cards"]._replace(title="These people among the training sample")
        sections["groups"] = sections["groups"]._replace(layer="checks", title=LAYERS["difference"])
        sections["verdict"] = sections["verdict"]._replace(title="Could other variables explain it?")
    measure = view.results.measure
    words = {"a_measure": f"{'an' if measure == 'R-index' else 'a'} {measure}"}
    titles = LAYERS | ({"result": "Result"} if view.summary.applied else {})
    layers = {name: Layer(name, title, []) for name, title in titles.items()}
    for one in sections.values():
        if html := section_html(one.name, view, one.contents(view)):
            layers[one.layer].sections.append(ShownSection(one.name, one.title.format(**words), html))
    return [layer for layer in layers.values() if layer.sections]


def section_html(template: str, view: RunView, data: dict[str, object] | None) -> Markup:
    """Return a section of a run as HTML, empty where there is nothing to show."""
    if data is None:
        return Markup("")
    run = view.run
    common = {"run": run, "summary": run.summary, "measure": run.results.measure, "measures": run.results.measures}
    common |= {"strip": view.gallery.strip, "n_people": len(run.results.first_visits)}
    return Markup(render(f"{template}.html.j2", data=data, **common))  # escaped there
