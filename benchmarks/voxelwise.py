"""Time and memory for comparing maps: 300 brain images at 2 mm, four subgroups of patients against controls.

    python benchmarks/voxelwise.py                             # compared with nilearn and a plain loop over voxels
    python benchmarks/voxelwise.py --maps 1000 --only ours

The images are compressed noise inside the standard brain. Each method runs in its own process, reads the same files and
computes t for four comparisons; ours also computes q and clusters and writes all files. The loop fits some of the
voxels and is extrapolated.
"""

from __future__ import annotations

import argparse
import gzip
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import nibabel
import numpy as np
import pandas as pd
from nilearn.datasets import load_mni152_brain_mask
from nilearn.glm.second_level import SecondLevelModel

from rindices.imaging import compare_maps, write_comparisons

AFFINE = np.array([[2.0, 0, 0, -90], [0, 2, 0, -126], [0, 0, 2, -72], [0, 0, 0, 1]])
SHAPE = (91, 109, 91)
WAYS = ("ours", "nilearn", "loop")
SUBGROUPS = ((0.1, 0.1), (0.5, 0.1), (0.9, 0.1), (0.1, 0.5))  # r1, r2: low, middle and high of r1, middle of r2


def make(folder: Path, n_maps: int) -> None:
    """Write images of noise, a third of them of controls, with a mask and a table of people."""
    rng = np.random.default_rng(0)
    whole = load_mni152_brain_mask(resolution=1)
    places = np.indices(SHAPE).reshape(3, -1)
    world = AFFINE[:3, :3] @ places + AFFINE[:3, 3:]
    there = np.rint(world - whole.affine[:3, 3:]).astype(int)
    inside = np.asarray(whole.dataobj)[tuple(np.clip(there, 0, np.array(whole.shape)[:, None] - 1))].reshape(SHAPE) > 0
    nibabel.save(nibabel.Nifti1Image(inside.astype(np.uint8), AFFINE), folder / "mask.nii.gz")
    people = pd.DataFrame({"participant_id": [f"sub-{k}" for k in range(n_maps)]})
    people["path"] = [f"{name}.nii.gz" for name in people["participant_id"]]
    subgroup = np.where(np.arange(n_maps) < n_maps // 3, -1, np.arange(n_maps) % len(SUBGROUPS))
    people["group"] = np.where(subgroup < 0, "control", "patient")
    people[["r1", "r2"]] = [SUBGROUPS[k] if k >= 0 else (0.0, 0.0) for k in subgroup]
    people["subgroup"] = subgroup
    people["age"], people["sex"] = rng.uniform(50, 80, n_maps), rng.integers(0, 2, n_maps).astype(float)
    people.to_csv(folder / "people.csv", index=False)
    for path in people["path"]:
        values = np.zeros(SHAPE, np.float32)
        values[inside] = np.round(1 + 0.2 * rng.standard_normal(inside.sum(), np.float32), 3)
        data = nibabel.Nifti1Image(values, AFFINE).to_bytes()
        (folder / path).write_bytes(gzip.compress(data, compresslevel=1))


def ours(folder: Path, people: pd.DataFrame) -> float:
    """Compare the maps and write the results; return seconds."""
    start = time.perf_counter()
    scores = people[["participant_id", "r1", "r2"]]
    compared = compare_maps(folder / "people.csv", scores, people["group"], people[["age", "sex"]])
    write_comparisons(folder / "found", compared)
    np.save(folder / "ours.npy", compared[2].result.space.volume(compared[2].result.t, 0.0))
    return time.perf_counter() - start


def designs(people: pd.DataFrame) -> list[tuple[np.ndarray, pd.DataFrame]]:
    """Return, for each subgroup, the people compared and the design matrix."""
    found = []
    for k in range(len(SUBGROUPS)):
        used = people["subgroup"].isin([-1, k]).to_numpy()
        design = people.loc[used, ["age", "sex"]].assign(constant=1.0, effect=(people["subgroup"] == k) * 1.0)
        found.append((used, design.reset_index(drop=True)))
    return found


def nilearn(folder: Path, people: pd.DataFrame) -> float:
    """Fit nilearn's model for each subgroup, with two jobs; return seconds."""
    start = time.perf_counter()
    for k, (used, design) in enumerate(designs(people)):
        model = SecondLevelModel(mask_img=folder / "mask.nii.gz", n_jobs=2)
        model.fit([str(folder / path) for path in people["path"][used]], design_matrix=design)
        image = model.compute_contrast("effect", output_type="stat")
        if k == 2:
            np.save(folder / "nilearn.npy", image.get_fdata())
    return time.perf_counter() - start


def loop(folder: Path, people: pd.DataFrame, n_fitted: int = 3000) -> float:
    """Read all maps and fit some voxels one by one; return the estimated seconds for all voxels."""
    start = time.perf_counter()
    inside = np.asarray(nibabel.load(folder / "mask.nii.gz").dataobj) > 0
    paths = [folder / path for path in people["path"]]
    values = np.stack([np.asarray(nibabel.load(path).dataobj)[inside] for path in paths])
    read = time.perf_counter() - start
    for used, design in designs(people):
        x, y = design.to_numpy(), values[used]
        inverse = np.linalg.inv(x.T @ x)
        for voxel in range(n_fitted):
            beta, squares, _, _ = np.linalg.lstsq(x, y[:, voxel].astype(float), rcond=None)
            beta[-1] / np.sqrt(squares[0] / (len(x) - x.shape[1]) * inverse[-1, -1])
    fitted = time.perf_counter() - start - read
    return read + fitted * values.shape[1] / n_fitted


def main() -> None:
    """Make images, run each method in its own process, and print time and memory."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--maps", type=int, default=300)
    parser.add_argument("--only", choices=WAYS, nargs="*", default=list(WAYS))
    parser.add_argument("--folder", type=Path, help="keep the images here and use them again")
    parser.add_argument("--way", choices=WAYS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.way:
        seconds = globals()[options.way](options.folder, pd.read_csv(options.folder / "people.csv"))
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        print(json.dumps({"seconds": seconds, "GiB": peak}))
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        if not (folder / "people.csv").exists():
            make(folder, options.maps)
        n_voxels = int(np.asarray(nibabel.load(folder / "mask.nii.gz").dataobj).sum())
        print(f"{options.maps} maps x {n_voxels:,} voxels x {len(SUBGROUPS)} subgroups")
        for way in options.only:
            command = [sys.executable, __file__, "--way", way, "--folder", str(folder)]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            found = json.loads(done.stdout.splitlines()[-1])
            print(f"{way:8} {found['seconds']:8.1f} s, peak memory {found['GiB']:.2f} GiB", flush=True)
        if {"ours", "nilearn"} <= set(options.only):
            difference = np.abs(np.load(folder / "ours.npy") - np.load(folder / "nilearn.npy")).max()
            print(f"largest difference between ours and nilearn's t: {difference:.1e}")


if __name__ == "__main__":
    main()
