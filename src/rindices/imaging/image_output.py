"""Files of map comparisons and painted patterns: NIfTI images and tables; clusters of significant voxels."""

import gzip
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import ndimage

from rindices.files import atomic_file, write_csv
from rindices.imaging.images import library, open_image, volume_of
from rindices.imaging.voxelwise import REGRESSION, THRESHOLD, Comparison, Result
from rindices.problems import InputError, Remedy, counted, listed

_LABELS, _NAMES = ("label", "index", "number"), ("region", "name")
_ROUNDING = 1e-3  # tolerance for labels stored as floating-point numbers
_COLUMNS = ["pattern", "level", "cluster", "x", "y", "z", "peak_t", "peak_q", "n_voxels", "size_mm3"]


def comparison_table(comparisons: Sequence[Comparison]) -> pd.DataFrame:
    """Return a table with one row per comparison.

    Parameters
    ----------
    comparisons
        From `compare_maps`.

    Returns
    -------
    DataFrame
        ``pattern``, ``level``, ``rule``, ``n_patients``, ``n_controls``, ``without_map``, ``without_covariates``,
        ``freedom``, ``n_voxels`` (tested), ``n_significant`` (q < 0.05), ``t_map`` and ``q_map`` (file names; ""
        if there are none) and ``note``.
    """
    rows = []
    for comparison in comparisons:
        row, result = comparison._asdict(), comparison.result
        row |= {
            "freedom": np.nan if result is None else result.freedom,
            "n_voxels": 0 if result is None else int(np.isfinite(result.t).sum()),
            "n_significant": 0 if result is None else int((result.q < THRESHOLD).sum()),
            **{f"{kind}_map": "" if result is None else _name(comparison, kind) for kind in "tq"},
            "note": row.pop("note"),
        }
        rows.append(row)
    return pd.DataFrame(rows).drop(columns="result")


def write_comparisons(folder: str | Path, comparisons: Sequence[Comparison]) -> list[Path]:
    """Write the images of t and q and the tables of comparisons and clusters; earlier images are removed.

    Outside the mask, and where nothing could be computed, t is 0 and q is 1, so that viewers do not show a finding.

    Parameters
    ----------
    folder
        Created if it does not exist.
    comparisons
        From `compare_maps`.

    Returns
    -------
    list of Path
        The files: ``comparisons.csv``, ``clusters.csv`` and images such as ``pattern-1_high_t.nii.gz``.
    """
    folder, written = Path(folder), []
    for comparison in (one for one in comparisons if one.result is not None):
        for kind, outside in (("t", 0.0), ("q", 1.0)):
            written.append(folder / _name(comparison, kind))
            _save(_image(comparison, kind, outside), written[-1])
    _remove_others(folder, "pattern-*_[tq].nii.gz", written)
    tables = {"comparisons.csv": comparison_table(comparisons), "clusters.csv": cluster_table(comparisons)}
    for name, table in tables.items():
        write_csv(table, folder / name)
    return [*(folder / name for name in tables), *written]


def _name(comparison: Comparison, kind: str) -> str:
    return f"pattern-{comparison.pattern}_{comparison.level}_{kind}.nii.gz"


def _image(comparison: Comparison, kind: str, outside: float) -> Any:
    """Return t or q as an image with a description of up to 79 characters, NIfTI's limit."""
    result: Any = comparison.result
    values, affine = getattr(result, kind).astype(np.float32), result.space.grid.affine
    image = library("nibabel").Nifti1Image(result.space.volume(values, outside), affine)
    image.set_sform(affine, result.space.code)
    image.set_qform(affine, result.space.code)
    image.header.set_xyzt_units("mm")
    others = "" if comparison.level == REGRESSION else f" v {comparison.n_controls:,} controls"
    image.header["descrip"] = (
        f"{kind}: pattern {comparison.pattern} {comparison.level}, {comparison.n_patients:,} patients{others}"
    ).encode("ascii")
    if kind == "t":
        image.header.set_intent("t test", (result.freedom,))
    return image


def _save(image: Any, path: Path) -> None:
    with atomic_file(path) as beside:
        beside.write_bytes(gzip.compress(image.to_bytes(), compresslevel=6, mtime=0))


def _remove_others(folder: Path, names: str, kept: Sequence[Path]) -> None:
    """Remove images from earlier runs."""
    for path in set(folder.glob(names)) - set(kept):
        path.unlink()


def cluster_table(comparisons: Sequence[Comparison]) -> pd.DataFrame:
    """List the clusters of voxels with q below 0.05, the largest first.

    The voxels of a cluster share faces, and t has the same sign in all of them.

    Parameters
    ----------
    comparisons
        From `compare_maps`.

    Returns
    -------
    DataFrame
        ``pattern``, ``level``, ``cluster`` (1 is the largest), ``x``, ``y`` and ``z`` of the peak in mm (MNI if the
        maps are), ``peak_t``, ``peak_q``, ``n_voxels`` and ``size_mm3``.
    """
    return pd.DataFrame(
        [
            [comparison.pattern, comparison.level, number, *row]
            for comparison in comparisons
            if comparison.result is not None
            for number, row in enumerate(_clusters(comparison.result), start=1)
        ],
        columns=_COLUMNS,
    )


def _clusters(result: Result) -> list[list[float]]:
    t, q = result.space.volume(result.t, 0.0), result.space.volume(result.q, 1.0)
    rows = []
    for sign in (-1, 1):
        labels, number = ndimage.label((q < THRESHOLD) & (sign * t > 0))
        sizes = np.bincount(labels.ravel(), minlength=number + 1)[1:]
        peaks = ndimage.maximum_position(sign * t, labels, range(1, number + 1)) if number else []
        for size, peak in zip(sizes, peaks, strict=True):
            position = result.space.grid.affine[:3] @ [*peak, 1]
            rows.append([*position, t[peak], q[peak], int(size), size * result.space.grid.voxel_mm3])
    return sorted(rows, key=lambda row: (-row[5], -abs(row[3])))


def paint_patterns(patterns: pd.DataFrame, atlas: Path, names: pd.DataFrame, folder: Path) -> tuple[list[Path], str]:
    """Write one image per pattern and severity: the atlas with each region's change, in sd of controls.

    Parameters
    ----------
    patterns
        Columns region, pattern and change_sd, and severity if there are several; otherwise it is 1.
    atlas
        Image of whole numbers, one for each region, 0 outside.
    names
        The region of each number: columns ``label`` (or ``index``, ``number``) and ``region`` (or ``name``). Several
        labels may belong to one region.
    folder
        Folder for ``pattern-1_severity-0.5.nii.gz`` and so on; images from earlier runs are removed.

    Returns
    -------
    tuple of (list of Path, str)
        The images, and a note on regions and labels without a match.

    Raises
    ------
    InputError
        If the image or the table cannot be used.
    """
    image = open_image(atlas, "The atlas")
    labels, place = np.unique(_whole_numbers(volume_of(image, atlas, "The atlas"), atlas), return_inverse=True)
    table = patterns if "severity" in patterns else patterns.assign(severity=1.0)
    named, measured = _regions_of(names), table["region"].unique()
    regions = named[named.index.isin(labels) & named.isin(measured)]
    if regions.empty:
        raise InputError(
            f"No region in the results has a label in {atlas}.\nThe results contain, for example, "
            f"{measured[0]!r}; the atlas table contains {named.iloc[0] if len(named) else None!r}. Use the same region "
            "names in both."
        )
    painted = []
    for (number, severity), rows in table.groupby(["pattern", "severity"]):
        change = regions.map(rows.set_index("region")["change_sd"]).reindex(labels).fillna(0).to_numpy(np.float32)
        painted.append(folder / f"pattern-{number:g}_severity-{severity:g}.nii.gz")
        _save(library("nibabel").Nifti1Image(change[place].reshape(image.shape[:3]), image.affine), painted[-1])
    _remove_others(folder, "pattern-*.nii.gz", painted)
    without_label, without_region = len({*measured} - {*regions}), len({*labels} - {*regions.index, 0})
    notes = {
        counted(without_label, "region has", "regions have") + " no label in the image": without_label,
        counted(without_region, "label of the image has", "labels of the image have") + " no region": without_region,
    }
    return painted, " and ".join(note for note, number in notes.items() if number)


def _whole_numbers(data: np.ndarray, path: Path) -> np.ndarray:
    with np.errstate(invalid="ignore"):
        odd = data[~(np.abs(data - np.round(data)) <= _ROUNDING)]
    if odd.size:
        raise InputError(
            f"The atlas {path} should contain whole numbers, one for each region, but {odd.size:,} voxels "
            f"contain other values, such as {odd[0]:.4g}.\nProvide the label image; if it must be resampled, use "
            "nearest-neighbour interpolation."
        )
    return np.round(data).astype(np.int64)


def _regions_of(names: pd.DataFrame) -> pd.Series:
    """Return the region of each label."""
    label, region = (next((name for name in options if name in names), None) for options in (_LABELS, _NAMES))
    if label is None or region is None:
        raise InputError(
            f"The atlas table should have the columns 'label' and 'region', but its columns are {listed(names)}.\n"
            f"Provide a table of labels and regions with ",
            Remedy("atlas_table"),
            ".",
        )
    numbers = pd.to_numeric(names[label], errors="coerce")
    wrong = ((numbers % 1 != 0) | numbers.duplicated()).to_numpy()
    if wrong.any():
        raise InputError(
            f"Column {label!r} of the atlas table should contain a different whole number in each row, but row "
            f"{wrong.argmax() + 2} contains {names[label].iloc[wrong.argmax()]!r}.\nCorrect the table."
        )
    return pd.Series(names[region].to_numpy(), index=numbers.astype(int)).dropna().astype(str)
