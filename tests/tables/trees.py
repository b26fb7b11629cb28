"""Folders as segmentation programs write them, with made-up values."""

from pathlib import Path

import numpy as np

ASEG = (
    "Left-Lateral-Ventricle",
    "Left-Thalamus",
    "Left-Hippocampus",
    "Right-Hippocampus",
    "Brain-Stem",
    "5th-Ventricle",
)
CORTEX = ("bankssts", "cuneus", "entorhinal", "insula", "precuneus")


def aseg_stats(rng, name="sub", version="7.4.1", regions=ASEG):
    """Return the text of an aseg.stats, in which the last region is always empty."""
    rows = [
        f"{i} {i} 1 {volume:.1f} {one} 1 1 1 1 1"
        for i, (one, volume) in enumerate(zip(regions, [*rng.uniform(2000, 9000, len(regions) - 1), 0.0], strict=True))
    ]
    head = (
        "# Title Segmentation Statistics\n"
        f"# cvs_version {version}\n# subjectname {name}\n"
        "# Measure BrainSeg, BrainSegVol, Brain Segmentation Volume, 1248820.000000, mm^3\n"
        f"# Measure lhSurfaceHoles, lhSurfaceHoles, Number of defect holes, {rng.integers(1, 40)}, unitless\n"
        f"# Measure rhSurfaceHoles, rhSurfaceHoles, Number of defect holes, {rng.integers(1, 40)}, unitless\n"
        f"# Measure EstimatedTotalIntraCranialVol, eTIV, Estimated Volume, {rng.uniform(1.2e6, 1.8e6):.6f}, mm^3\n"
        f"# NRows {len(rows)}\n# NTableCols 10\n"
        "# ColHeaders  Index SegId NVoxels Volume_mm3 StructName normMean normStdDev normMin normMax normRange\n"
    )
    return head + "\n".join(rows) + "\n"


def aparc_stats(rng, regions=CORTEX):
    """Return the text of an aparc.stats, without a comma that FreeSurfer 6 omits."""
    rows = [
        f"{one} 1000 {rng.uniform(500, 900):.0f} {rng.uniform(2000, 9000):.0f} {rng.uniform(2, 3):.3f} 1 1 1 1 1"
        for one in regions
    ]
    head = (
        "# Measure Cortex, CortexVol Total cortical gray matter volume, 527104.250660, mm^3\n# NTableCols 10\n"
        "# ColHeaders StructName NumVert SurfArea GrayVol ThickAvg ThickStd MeanCurv GausCurv FoldInd CurvInd\n"
    )
    return head + "\n".join(rows) + "\n"


def subject(folder, name, seed, stem="aparc", **aseg):
    """Write one person of a SUBJECTS_DIR."""
    rng, stats = np.random.default_rng(seed), Path(folder, name, "stats")
    stats.mkdir(parents=True)
    (stats / "aseg.stats").write_text(aseg_stats(rng, name, **aseg))
    for side in ("lh", "rh"):
        (stats / f"{side}.{stem}.stats").write_text(aparc_stats(rng))
    return stats


def subjects_dir(folder, n_people=40, **how):
    """Write a SUBJECTS_DIR."""
    for number in range(n_people):
        subject(folder, f"sub-{number:04d}", number, **how)
    return Path(folder)
