"""Brains drawn as filled outlines, and the region names that are recognised."""

import json
import re
import xml.etree.ElementTree as ET
from collections import defaultdict
from importlib.resources import files
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from rindices.interop.muse import MUSE72_NAMES
from rindices.plots.brain import measures_of, outlined_regions
from rindices.plots.brain_drawing import Layout, draw_brain
from rindices.regions import known_regions, source_meanings
from tests.plots.tables import crossed

SVG, DATA = "{http://www.w3.org/2000/svg}", files("rindices.plots")
NAMES = pd.concat(
    pd.read_csv(
        files("rindices") / "region_dictionaries" / f"atlas_{atlas}.csv", comment="#", keep_default_na=False
    ).assign(atlas=atlas)
    for atlas in ("aseg", "dk", "destrieux", "muse")
)
DK = list(NAMES.loc[NAMES["atlas"] == "dk", "region"])
# The rows of FreeSurfer's aseg.stats, and the one that an average brain lacks.
ASEG_PAIRED = (
    *("Lateral-Ventricle", "Inf-Lat-Vent", "Cerebellum-White-Matter", "Cerebellum-Cortex", "Thalamus", "Caudate"),
    *("Putamen", "Pallidum", "Hippocampus", "Amygdala", "Accumbens-area", "VentralDC", "vessel", "choroid-plexus"),
    *("WM-hypointensities", "non-WM-hypointensities"),
)
ASEG_MIDDLE = (
    *("3rd-Ventricle", "4th-Ventricle", "Brain-Stem", "CSF", "5th-Ventricle", "Optic-Chiasm", "WM-hypointensities"),
    *("non-WM-hypointensities", "CC_Posterior", "CC_Mid_Posterior", "CC_Central", "CC_Mid_Anterior", "CC_Anterior"),
)
ASEG = [*(f"{side}-{name}" for side in ("Left", "Right") for name in ASEG_PAIRED), *ASEG_MIDDLE]
EMBEDDED = json.loads((files("rindices.simulate") / "reference_population.json").read_text(encoding="utf-8"))["regions"]


def muse(form):
    table = pd.read_csv(Path(__file__).with_name("muse_regions.csv"), keep_default_na=False)  # as MUSE writes them
    rows = [row for row in table.to_dict("records") if row["short"] or "{short}" not in form]
    sides = {"left": "Left ", "right": "Right ", "none": ""}
    return [form.format(side=sides[row["hemisphere"]], **row) for row in rows]


def patterns(names, n_patterns=2):
    table = crossed(pattern=range(1, n_patterns + 1), region=names)
    return table.assign(change_sd=np.random.default_rng(0).normal(size=len(table)))


def pieces(drawing, key="b"):
    """Return the pieces of an SVG by title, with look, opacity and whether they are mirrored."""
    found = defaultdict(list)
    for one in ET.fromstring(drawing.svg(key)).iterfind(f".//{SVG}use[{SVG}title]"):
        mirrored = one.attrib["transform"].startswith("matrix(-")
        look = one.attrib["class"], float(one.attrib.get("fill-opacity", "nan")), mirrored
        found[one.find(f"{SVG}title").text].append(look)
    return found


def written(drawing):
    """Return the words of an SVG."""
    return [one.text for one in ET.fromstring(drawing.svg()).iter(f"{SVG}text")]


@pytest.mark.parametrize(
    "form",
    [
        *("lh_{}_volume", "rh_{}_thickness", "lh_{}_area", "lh_{}_grayvol", "lh.{}", "rh.{}.thickness", "ctx-lh-{}"),
        *("ctx_rh_{}", "Left-{}", "left_{}", "right {}", "{}_left", "L_{}_thickavg", "thickness_lh_{}"),
    ],
)
def test_all_of_desikan_and_killiany_are_drawn_however_they_are_written(form):
    regions, side = outlined_regions(map(form.format, DK)), "left" if re.search("(?i)lh|left|L_", form) else "right"
    assert {name: (one.atlas, one.outlines, one.sides) for name, one in regions.items()} == {
        form.format(name): ("dk", (name,), (side,)) for name in DK
    }
    assert (len(DK), regions[form.format("insula")].title) == (34, f"{side} insula")


def sided(form, names):
    return [form.format(side=side, name=name) for side in ("left", "right") for name in names]


DKT = [name for name in DK if name not in ("bankssts", "frontalpole", "temporalpole")]
MUSE_FORMS = (
    *("MUSE_Volume_{number}", "H_MUSE_Volume_{number}", "DL_MUSE_Volume_{number}"),
    *("{side}{name}", "{side}{short}", "{side}{short} {name}"),
)
PROGRAMS = {
    "FreeSurfer, aseg": [*ASEG, "lhCerebralWhiteMatterVol"],
    "FreeSurfer, Desikan-Killiany": sided("{side}_{name}_thickness", DK),
    "FreeSurfer, DKT": sided("{side}_{name}_volume", DKT),
    "FreeSurfer, Destrieux": sided("{side}_{name}_area", NAMES.loc[NAMES["atlas"] == "destrieux", "region"]),
    **{form: muse(form) for form in MUSE_FORMS},
    "MUSE, 72 regions": MUSE72_NAMES,
    "simulated cohorts": EMBEDDED,
    "SynthSeg": [
        *(f"{side} {name}" for side in ("left", "right") for name in ("cerebral white matter", "lateral ventricle")),
        *sided("{side} {name}", ("inferior lateral ventricle", "cerebellum white matter", "cerebellum cortex")),
        *sided("{side} {name}", ("thalamus", "caudate", "putamen", "pallidum", "hippocampus", "amygdala")),
        *sided("{side} {name}", ("accumbens area", "ventral DC")),
        *("3rd ventricle", "4th ventricle", "brain-stem", "csf"),
        *(f"ctx-{side}-{name}" for side in ("lh", "rh") for name in DK),
    ],
    "ENIGMA": [
        *(f"{side}_{name}_{measure}" for side in "LR" for name in DK for measure in ("thickavg",)),
        *(f"{side}{name}" for side in "LR" for name in ("LatVent", "thal", "caud", "put", "pal", "amyg", "accumb")),
        *("Lhippo", "Rhippo"),
    ],
    # As in CAT12 (names and codes of the atlas) and SPM, without MUSE's parts of the white matter.
    "Neuromorphometrics": [
        *(name for name in muse("{side}{name}") if not re.search("lobe|fornix|internal|callosum", name)),
        *("Right Cerebral White Matter", "Left Cerebral White Matter", "CSF", "Right vessel", "Left vessel"),
        "Optic Chiasm",
    ],
    "CAT12": [
        f"{side}{code}"
        for side in "lr"
        for code in NAMES.loc[NAMES["atlas"].isin(["aseg", "muse"]) & (NAMES["code"] != ""), "code"]
    ],
}


@pytest.mark.parametrize("program", PROGRAMS)
def test_nearly_all_regions_of_each_program_are_drawn(program):
    names = PROGRAMS[program]
    assert sorted(known_regions(names)) == sorted(names)
    assert len(outlined_regions(names)) >= 0.95 * len(names) > 0.95 * 40


@pytest.mark.parametrize(("study", "number"), [("uk_biobank", 153), ("adni", 245), ("abcd", 242)])
def test_nearly_all_regions_of_each_study_are_drawn(study, number):
    names = [name for name, one in source_meanings(study).items() if one.kind == "region" and "*" not in name]
    names = [f"{name}-2.0" if study == "uk_biobank" else name for name in names]
    assert (len(names), len(outlined_regions(names)) >= 0.99 * number) == (number, True)


def test_parts_are_drawn_rather_than_the_whole():
    parts = [f"ctx-lh-{name}" for name in DK]
    table = pd.DataFrame({"region": ["left cerebral cortex", *parts], "pattern": 1, "change_sd": [-9.0] + [-1.0] * 34})
    assert (draw_brain(table, 1).missing, draw_brain(table[:1], 1).missing) == (("left cerebral cortex",), ())
    # A region that covers others is drawn only if the table has it.
    tables = patterns(["Left-Hippocampus"]), patterns(["Left-Hippocampus", "Left-choroid-plexus"], 1)
    titles = [" ".join(pieces(draw_brain(table, 1))) for table in tables]
    assert ["left choroid plexus" in title for title in titles] == [False, True]


def test_a_region_is_the_same_under_all_its_names():
    hippocampus = "rHip", "MUSE_Volume_47", "Right Hippocampus", "right_hippocampus", "Right-Hippocampus"
    same = {"right hippocampus": hippocampus, "left thalamus": ("Left-Thalamus", "Left-Thalamus-Proper")}
    assert {title: {known_regions([name])[name].title for name in names} for title, names in same.items()} == {
        title: {title} for title in same
    }
    # The second is as in aparc.a2009s.stats.
    both, ampersand = known_regions(["MUSE_47+48 hippocampus", "lh_G&S_subcentral_area"]).values()
    assert (both.title, both.sides) == ("hippocampus, both sides", ("left", "right"))
    assert ampersand.title == "left subcentral gyrus and sulci"
    # The atlas that knows most names of a table decides the meaning of each.
    for table, atlas in ((["lh_cuneus", "lh_insula"], "dk"), (["left cuneus", "left angular gyrus", "lHip"], "muse")):
        assert known_regions(table)[table[0]].atlas == atlas


def test_what_is_not_known_is_told_and_nothing_is_guessed():
    odd = ["PO", "ACC", "lACC", "MUSE_Volume_601", "MUSE_47+999", "MUSE_47+31", "", "Left", "47", "PT_volume", "eTIV"]
    assert list(known_regions(["lHip", *odd])) == ["lHip"]
    assert draw_brain(patterns(["lHip", *odd, "5th-Ventricle"]), 1).missing == (*odd, "5th-Ventricle")
    assert draw_brain(patterns(odd), 1) is None


def test_colours_and_titles_are_those_of_the_changes():
    names = pd.DataFrame({"region": ["lHip", "rHip", "lAmy", "rAmy"]})
    first = names.assign(pattern=1, change_sd=[-2.0, 1.0, 0.0, np.nan])
    drawing = draw_brain(pd.concat([first, names.assign(pattern=2, change_sd=[-0.5, 4.0, 0.0, 0.0])]), 1)
    assert drawing.limit == 4  # the least of 1, 2 and 4 that holds nearly all changes of any pattern
    found = pieces(drawing)
    expected = {
        "left hippocampus (lHip): −2 sd": [("lower", pytest.approx(0.5), False)],
        "right hippocampus (rHip): +1 sd": [("higher", pytest.approx(0.25), True)],
        "left amygdala (lAmy): 0 sd": [("higher", 0.0, False)],
    }
    assert {title: found[title] for title in expected} == expected
    assert {(look, mirrored) for look, _, mirrored in found["right amygdala (rAmy): no value"]} == {("unknown", True)}
    # The drawing for files is the same: as many pieces, and the same words.
    axes, words = drawing.figure().axes[0], written(drawing)
    assert len(axes.patches) == drawing.svg().count("<use") + 1  # one more explains the look of missing values
    assert [text.get_text() for text in axes.texts] == words
    assert {"−4", "−2", "0", "+2", "+4", "change (sd of controls)"} <= {*words}


def test_the_middle_shows_both_sides():
    table = pd.DataFrame({"region": ["lCbeLoCbe1-5", "rCbeLoCbe1-5"], "change_sd": [-1.0, 0.5], "pattern": 1})
    [(title, [(look, opacity, _)])] = pieces(draw_brain(table, 1)).items()
    assert title.startswith("left cerebellar vermal lobules I-V (lCbeLoCbe1-5): −1 sd; right")
    assert (look, opacity) == ("lower", pytest.approx(0.25))


def test_names_are_escaped_and_ids_differ():
    odd = 'MUSE_Volume_47 <script>"&'
    drawing = draw_brain(pd.DataFrame({"region": [odd], "change_sd": [-1.0], "pattern": 1}), 1)
    assert f"right hippocampus ({odd}): −1 sd" in pieces(drawing)
    assert "<script>" not in drawing.svg()
    one, other = ({*re.findall(' id="([^"]+)"', drawing.svg(key))} for key in "ab")
    assert set() == one & other < one


def test_only_views_that_show_something_and_lines_as_asked():
    cortex, deep = [f"lh_{name}" for name in DK], ["Left-Hippocampus"]
    for names, views in ((cortex, ["lateral", "medial", "medial", "lateral"]), (deep, ["coronal -22"])):
        assert [[panel.view for panel in line] for line in draw_brain(patterns(names), 1).lines] == [views]
    assert [len(line) for line in draw_brain(patterns([*cortex, *ASEG]), 1, layout=Layout(4, 400)).lines] == [4, 4, 1]


def test_several_measures_of_a_region_have_a_drawing_each():
    names = [f"lh_{name}_{measure}" for measure in ("thickness", "area") for name in DK]
    table = patterns([*names, "Left-Hippocampus"])
    assert measures_of(table["region"]) == ("thickness", "area")
    drawing = draw_brain(table, 1, measure="area")
    assert (drawing.drawn, drawing.missing) == ({*names[34:], "Left-Hippocampus"}, ())


def test_slices_are_those_of_the_strongest_regions_and_the_uncertain_are_grey():
    strong = {"lHip": -1.8, "rHip": -1.8, "lAmy": 0.3}
    table = patterns(EMBEDDED, 1).assign(change_sd=lambda table: table["region"].map(strong).fillna(0.05))
    drawing = draw_brain(table, 1, layout=Layout(2, most_slices=2), unsure=["lAmy"])
    assert [panel.view for line in drawing.lines[2:] for panel in line] == ["coronal -22"]  # shows all strong regions
    assert drawing.limit == 1  # two of 128 regions exceed it and have full colour
    assert {look for look, *_ in pieces(drawing)["left hippocampus (lHip): −1.8 sd"]} == {"lower"}
    several = draw_brain(table.assign(change_sd=-1.0), 1, layout=Layout(2, most_slices=2))
    assert len([panel for line in several.lines for panel in line if not panel.side]) == 2
    every = draw_brain(table, 1, unsure=["lAmy"])
    assert {look for look, *_ in pieces(every)["left amygdala (lAmy): +0.3 sd"]} == {"unsure"}
    assert "uncertain" in written(every)


def test_amounts_have_the_views_of_the_changes_and_a_scale_from_zero():
    table = patterns(EMBEDDED)
    drawing = draw_brain(table, 1, layout=Layout(per_line=2, width=330, most_slices=2))
    amounts = {name: 0.2 * place / len(table) for place, name in enumerate(table["region"])}
    amount = drawing.with_amounts(amounts, "spread (sd)")
    assert (amount.piece_names, amount.limit) == (drawing.piece_names, 0.25)
    assert not re.search('class="(lower|higher)"|>[−+]', amount.svg("b"))
    assert {"0", "0.125", "0.25"} <= {*written(amount)[-5:]}
    assert "spread (sd)" in written(amount)
    assert amount.figure().get_size_inches() == pytest.approx(drawing.figure().get_size_inches())
