"""Grey-matter maps simulated from regional volumes, and a figure of differences between subgroups and controls."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd

mpl.use("Agg")
import matplotlib.pyplot as plt
import nibabel
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from nilearn.datasets import load_mni152_gm_template, load_mni152_template
from nilearn.plotting import plot_stat_map
from scipy.ndimage import gaussian_filter
from scipy.spatial import cKDTree

from rindices.imaging import Comparison

MILLIMETRES = 4
GREY = 0.2  # threshold of the template's probability of grey matter
FARTHEST = 30  # millimetres from the nearest region's centre; voxels beyond belong to no region
NOISE, SMOOTHNESS = 0.15, 1.5  # sd as a fraction of a voxel's grey matter; sd of the smoothing in voxels
SLICES = (-26, -14, -2, 10, 26, 42)


def made_maps(regions: pd.DataFrame, control: np.ndarray, folder: Path, seed: int) -> pd.DataFrame:
    """Write a map of each person and return the paths.

    A voxel of the template's grey matter belongs to the region with the nearest centre, and is scaled by the person's
    volume of that region relative to the controls' mean; smooth noise is added.
    """
    template = load_mni152_gm_template(resolution=MILLIMETRES)
    grey = np.asarray(template.get_fdata(), np.float32)
    inside = np.argwhere(grey > GREY)
    centres = _centres(regions.columns)
    where = nibabel.affines.apply_affine(template.affine, inside)
    distance, nearest = cKDTree(centres[["x", "y", "z"]]).query(where)
    column = regions.columns.get_indexer(centres["region"])[nearest]
    share = (regions / regions[control].mean()).to_numpy(np.float32)
    share = np.concatenate([share, np.ones((len(share), 1), np.float32)], axis=1)
    column = np.where(distance > FARTHEST, share.shape[1] - 1, column)
    rng = np.random.default_rng(seed)
    places, paths = tuple(inside.T), []
    scale = gaussian_filter(rng.standard_normal(grey.shape), SMOOTHNESS).std()
    for number, person in enumerate(share):
        values = grey * 0
        noise = gaussian_filter(rng.standard_normal(grey.shape).astype(np.float32), SMOOTHNESS) / scale
        values[places] = grey[places] * (person[column] + NOISE * noise[places])
        path = folder / f"{number:04d}.nii"
        nibabel.save(nibabel.Nifti1Image(values, template.affine), path)
        paths.append(str(path))
    return pd.DataFrame({"path": paths})


def draw_comparisons(found: Sequence[Comparison], names: Sequence[str], path: Path) -> None:
    """Draw t where the false discovery rate is below 5 %, in a row for each pattern and subgroup."""
    # Patients with low R-indices are the same subgroup for all patterns.
    shown = [one for one in found if one.result is not None and (one.level != "low" or one.pattern == 1)]
    behind = load_mni152_template(resolution=2)
    figure, axes = plt.subplots(len(shown), 1, figsize=(8.2, 0.4 + 1.3 * len(shown)), squeeze=False)
    figure.subplots_adjust(left=0.14, right=0.91, top=1 - 0.4 / (0.4 + 1.3 * len(shown)), bottom=0.01, hspace=0.05)
    axes = axes[:, 0]
    limit = max(float(np.nanmax(np.abs(one.result.t))) for one in shown)
    for axis, one in zip(axes, shown, strict=True):
        space = one.result.space
        strong = np.where(one.result.q < 0.05, np.nan_to_num(one.result.t), 0)
        plot_stat_map(
            nibabel.Nifti1Image(space.volume(strong.astype(np.float32), 0.0), space.grid.affine),
            bg_img=behind,
            display_mode="z",
            cut_coords=SLICES,
            axes=axis,
            figure=figure,
            threshold=1e-6,
            vmax=limit,
            cmap="RdBu_r",
            annotate=axis is axes[0],
            draw_cross=False,
            black_bg=False,
            colorbar=False,
        )
        who = "all R-indices low" if one.level == "low" else f"{names[one.pattern - 1]},\n{one.level} R-index"
        label = f"{who}\n({one.n_patients} patients)"
        place = axis.get_position()
        figure.text(0.01, (place.y0 + place.y1) / 2, label, ha="left", va="center", fontsize=8)
    bar = figure.add_axes((0.925, 0.1, 0.012, 0.3))
    figure.colorbar(ScalarMappable(Normalize(-limit, limit), "RdBu_r"), cax=bar, label="t")
    figure.suptitle("Less grey matter than in controls (blue): t, false discovery rate below 5 %", fontsize=10)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def _centres(names: pd.Index) -> pd.DataFrame:
    """Return approximate centres of the regions of simulated cohorts (mm, left is negative)."""
    rows = []
    for row in pd.read_csv(Path(__file__).with_name("region_centres.csv")).itertuples():
        rows += [(f"{side}{row.code}", sign * row.x, row.y, row.z) for side, sign in (("l", -1), ("r", 1))]
    centres = pd.DataFrame(rows, columns=["region", "x", "y", "z"])
    return centres[centres["region"].isin(names)]
