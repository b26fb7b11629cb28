"""Files of small images of made-up people."""

from typing import NamedTuple

import nibabel
import numpy as np
import pandas as pd

SHAPE = (9, 11, 7)
COARSE = np.array([[12.0, 0, 0, -66], [0, 12, 0, -100], [0, 0, 12, -60], [0, 0, 0, 1]])  # around a standard brain
AFFINE = np.array([[-4.0, 0, 0, 18], [0, 4, 0, -22], [0, 0, 4, -8], [0, 0, 0, 1]])


class People(NamedTuple):
    maps: pd.DataFrame
    r_indices: pd.DataFrame
    group: np.ndarray
    covariates: pd.DataFrame
    values: np.ndarray  # (people, x, y, z)
    mask: str


def write_image(path, values, affine=AFFINE, dtype=np.float32):
    nibabel.save(nibabel.Nifti1Image(np.asarray(values, dtype), affine), path)
    return str(path)


def people(folder, n_controls=25, n_patients=60, effect=0.0):
    """Make images with an effect of r1 in one box, and of age and sex in every voxel."""
    rng, n_people = np.random.default_rng(0), n_controls + n_patients
    group = np.repeat(["control", "patient"], [n_controls, n_patients])
    names = [f"sub-{k:03}" for k in range(n_people)]
    patient = group == "patient"
    r = np.where(patient[:, None], rng.uniform(0, 1, (n_people, 2)) * [1, 0.5], 0)
    age, sex = rng.uniform(50, 80, n_people) + 3 * patient, rng.choice(["F", "M"], n_people)
    values = 3 + rng.standard_normal((n_people, *SHAPE))
    values += (0.03 * age + 0.2 * (sex == "M"))[:, None, None, None]
    values[:, 2:5, 3:6, 2:5] -= effect * r[:, 0, None, None, None]
    values = values.astype(np.float32)
    paths = [write_image(folder / f"{name}.nii", image) for name, image in zip(names, values, strict=True)]
    inside = np.pad(np.ones(np.array(SHAPE) - 2), 1)
    return People(
        pd.DataFrame({"participant_id": names, "path": paths}),
        pd.DataFrame({"participant_id": names, "r1": r[:, 0], "r2": r[:, 1], "r1_sd": 0.1, "r2_sd": 0.1}),
        group,
        pd.DataFrame({"age": age, "sex": sex}),
        values,
        write_image(folder / "mask.nii", inside, dtype=np.uint8),
    )
