"""Whether disease can be separated from other effects: groups should overlap in everything but the disease."""

from collections.abc import Sequence
from itertools import chain

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from rindices.cohort.people import Cohort, check_follow_up
from rindices.cohort.region_candidates import closest_ties
from rindices.problems import InputError, Message, Remedy, Text, counted, listed, shown
from rindices.schema import CONTROL_NAMES, labels_with_counts
from rindices.schema.role_guesses import grouped, kinds_of

SEPARATING_AUC = 0.95
_MANY_REGIONS = 1000
_TIED = 0.4  # correlation in controls; each of 128 regions in healthy adults has 0.55 or more with its closest match
_FEW_NAMES = 20
_LEARNED = ("control", "patient")  # the groups used for training
_FEWEST_DIFFERENT = 5  # controls whose value differs from the rest; with fewer, halves and folds may have none


def check_comparability(cohort: Cohort) -> list[Text]:
    """Refuse regions and covariates that cannot be used for training, and return warnings about doubtful ones."""
    first = cohort.first_visit
    learned = cohort.group.where(first, "other")
    controls, patients = ((learned == name).to_numpy() for name in _LEARNED)
    features = cohort.features.fillna(cohort.features.median())
    _check_constant(features, controls)
    others = cohort.background.drop(columns=list(cohort.covariates.columns))
    empty = [str(name) for name in cohort.clinical if cohort.clinical[name].isna().all()]
    n_covariates = cohort.covariates.shape[1] - (cohort.site is not None)
    return [
        *check_follow_up(cohort.settings, cohort.clinical, cohort.features.index, cohort.group, first, n_covariates),
        *_other_warnings(cohort.diagnosis[first], cohort.group[first], cohort.control_labels, cohort.patient_labels),
        *_check_covariates(cohort.covariates, learned, cohort.settings.site, cohort.settings.proportion),
        *(
            warning
            for name, column in others.items()  # such as site and age, which may separate the groups as well
            for warning in _separation_warnings(
                str(name), *(column[own].dropna().to_numpy() for own in (controls, patients))
            )
        ),
        *_region_warnings(features.to_numpy(), [*map(str, features)], controls, patients),
        *([f"These clinical columns contain no values: {listed(empty)}."] if empty else []),
    ]


def _other_warnings(
    diagnosis: pd.Series, group: pd.Series, control: Sequence[str], patients: Sequence[str]
) -> list[Text]:
    """Return a message about people who are neither controls nor patients, and about labels that may denote either."""
    others = diagnosis[(group == "other").to_numpy()].value_counts()
    if not len(others):
        return []
    total, labels = int(others.sum()), {str(label): int(number) for label, number in others.items()}
    are = "is neither a control nor a patient and is" if total == 1 else "are neither controls nor patients and are"
    ways = [
        Message(
            f" {listed(names)} may denote {who}: to include these people, use ", Remedy(setting, [*taken, *names]), "."
        )
        for setting, who, taken, usual in (
            ("control", "controls", control, CONTROL_NAMES),
            ("patients", "patients", patients, ()),
        )
        if (names := [name for name in labels if name.casefold() in {*usual, *map(str.casefold, taken)}])
    ]
    scored = f"{counted(total, 'person', 'people')} {are} scored but not used for training"
    return [Message(f"{scored}: {labels_with_counts(labels)}.", *ways)]


def _check_constant(features: pd.DataFrame, is_control: NDArray[np.bool_]) -> None:
    """Refuse regions in which too few controls, or none, differ from the rest."""
    values = features[is_control]
    middle = values.median()
    n_others = ((values - middle).abs() > 1e-9 * values.abs().max()).sum()
    if names := [str(name) for name in n_others.index[n_others < _FEWEST_DIFFERENT]]:
        first = names[0]
        controls = f"every control but {n_others[first]}" if n_others[first] else "every control"
        who = "everyone" if features[first].nunique() == 1 else controls
        scores = Message("Name scores with ", Remedy("clinical", names), ", or exclude")
        raise InputError(
            f"Every region must vary among the controls (at least {_FEWEST_DIFFERENT} of them must differ from the "
            f"rest), but {counted(len(names), 'region does', 'regions do')} not: {listed(names)}.\n"
            f"In column {first!r}, {who} has the value {shown(float(middle[first]))}.\n",
            "Exclude" if who == "everyone" else scores,
            f" the column{'s' if len(names) > 1 else ''} with ",
            Remedy("exclude", names),
            ".",
        )


def refuse_apart(name: str, controls: NDArray, patients: NDArray) -> None:
    """Refuse a variable of which the groups have no value in common: categories, or a number that all controls share.

    Examples
    --------
    >>> refuse_apart("sex", np.array(["F", "M"], object), np.array(["M", "M"], object))
    """
    alike = controls.dtype.kind != "f" or pd.unique(controls).size == 1
    if alike and not np.isin(patients.astype(str), controls.astype(str)).any():
        levels = [listed(map(shown, sorted(set(values))), 4) for values in (controls, patients)]
        raise InputError(
            f"Disease cannot be separated from {name!r}: patients and controls have no value in common (controls: "
            f"{levels[0]}; patients: {levels[1]}).\n"
            f"Correcting for {name} would also remove the effect of disease; without correction, the effect of {name} "
            "would look like disease.\n"
            f"If {name} merely repeats the diagnosis, omit it; otherwise, add people so that the groups overlap."
        )


def _separation_warnings(name: str, controls: NDArray, patients: NDArray) -> list[str]:
    """Return a warning if a variable alone separates the groups completely or nearly so."""
    if not (controls.size and patients.size and group_separation(controls, patients)):
        return []
    completely = (
        controls.max() < patients.min() or patients.max() < controls.min()
        if controls.dtype.kind == "f"
        else not {*controls} & {*patients}
    )
    how = (
        f"completely, so disease cannot be separated from {name}."
        if completely
        else f"almost perfectly, so the patterns may reflect {name} rather than disease."
    )
    return [f"{name} alone distinguishes controls from patients {how} The groups should overlap in {name}."]


def _check_covariates(
    covariates: pd.DataFrame, group: pd.Series, site: str | None, proportion: str | None
) -> list[str]:
    """Refuse covariates whose effects cannot be estimated in controls; return warnings about doubtful ones.

    Regions are divided by ``proportion``, which does not involve extrapolation.
    """
    is_control, is_patient = (group == "control").to_numpy(), (group == "patient").to_numpy()
    warnings: list[str] = []
    for name in map(str, covariates.columns):
        values = covariates[name].to_numpy()
        if values.dtype.kind != "f" and name != site and 2 * pd.unique(values).size > len(values):
            raise InputError(
                f"Column {name!r} has {pd.unique(values).size:,} different values among {len(values):,} people, so "
                "its effect cannot be estimated.\n"
                f"Replace dates with numbers (for example, use age in years instead of date of birth), or omit "
                f"{name}."
            )
        refuse_apart(name, values[is_control], values[is_patient])
        if pd.unique(values[is_control]).size == 1:
            raise InputError(
                f"The effect of {name!r} cannot be estimated, because all controls have the same value "
                f"({shown(values[is_control][0])}).\nOmit ",
                Remedy("site") if name == site else name,
                ", or add controls with other values.",
            )
        if values.dtype.kind != "f":
            _refuse_new_levels(covariates[name], is_control)
        elif name != proportion:
            low, high = float(values[is_control].min()), float(values[is_control].max())
            if outside := int(((values < low) | (values > high))[is_patient].sum()):
                warnings.append(
                    f"In {outside:,} of {counted(int(is_patient.sum()), 'patient')}, {name} lies outside the controls' "
                    "range, so its effect has to be extrapolated."
                )
        warnings += _separation_warnings(name, values[is_control], values[is_patient])
    return warnings + _repetition_warnings(covariates[is_control])


def _refuse_new_levels(column: pd.Series, is_control: NDArray[np.bool_]) -> None:
    name, in_controls = str(column.name), set(column[is_control])
    if len(new := column[~column.isin(in_controls).to_numpy()]):
        levels = {str(level): counted(int(number), "person", "people") for level, number in new.value_counts().items()}
        raise InputError(
            f"Column {name!r} has {counted(len(levels), 'category', 'categories')} without any controls: "
            f"{listed(f'{level} ({number})' for level, number in levels.items())} "
            f"(participant {new.index[0]}, for example).\n"
            "The effect of a category without controls cannot be estimated. Categories found in controls: "
            f"{listed(sorted(in_controls), 10)}.\n"
            f"If {next(iter(levels))!r} stands for a missing value, use ",
            Remedy("missing", f"{name}={next(iter(levels))}"),
            f". Otherwise, remove these people, add controls from the same category, or omit {name}.",
        )


def _repetition_warnings(controls: pd.DataFrame) -> list[str]:
    """Return warnings about covariates whose effects cannot be separated in controls."""
    if controls.empty:
        return []
    blocks = {
        name: column.to_frame() if column.dtype.kind == "f" else pd.get_dummies(column, dtype=float).iloc[:, 1:]
        for name, column in controls.items()
    }
    design = pd.concat(blocks, axis=1)
    centred = (design - design.mean()).to_numpy(dtype=np.float64)
    # The diagonal of the triangle is what the columns before leave of each.
    triangle = np.linalg.qr(centred / np.maximum(np.abs(centred).max(axis=0), 1e-300), mode="r")
    left_over = np.abs(np.diag(triangle))
    repeated = design.columns.get_level_values(0)[: len(left_over)][left_over < 1e-6].unique()
    return [
        f"In controls, {name} adds no information to {listed(controls.columns[: controls.columns.get_loc(name)])}, so "
        "their effects cannot be separated. If they measure the same thing, omit one of them."
        for name in repeated
    ]


def group_separation(controls: NDArray, patients: NDArray) -> bool:
    """Return whether a covariate alone nearly separates the groups.

    The area under the ROC curve is then at least 0.95 (or at most 0.05), with categories ranked by their share of
    patients. Categories with fewer than two people on average are uninformative.

    Examples
    --------
    >>> group_separation(np.arange(30.0), np.arange(60.0, 90.0))
    True
    """
    together = pd.Series(np.concatenate([controls, patients]))
    is_patient = np.repeat([0.0, 1.0], [len(controls), len(patients)])
    if controls.dtype.kind != "f":
        if together.nunique() > len(together) / 2:
            return False
        together = together.map(pd.Series(is_patient).groupby(together).mean())
    rank_sum = together.rank().to_numpy() @ is_patient
    area = (rank_sum - len(patients) * (len(patients) + 1) / 2) / (len(controls) * len(patients))
    return bool(max(area, 1 - area) >= SEPARATING_AUC)


def _region_warnings(
    block: NDArray[np.float64], regions: Sequence[str], controls: NDArray[np.bool_], patients: NDArray[np.bool_]
) -> list[Message]:
    """Warn of columns that do not look like regions, and of more regions than the method is meant for."""
    groups = grouped(regions, kinds_of(regions, block))
    unnamed = groups.pop("regions", [])  # whose names do not say what is measured
    measures = {what: groups.pop(what) for what in [*groups] if what in ("volumes", "thicknesses", "areas")}
    plain = {*unnamed, *chain(*measures.values())}
    # Where half the patients lie below the controls' 80 % quantile, the area under the curve is at most 0.9.
    low, high = np.quantile(block[controls], [0.2, 0.8], axis=0)
    middle = np.median(block[patients], axis=0)
    suspects = [
        place
        for place in np.flatnonzero((middle > high) | (middle < low)).tolist()
        if regions[place] in plain and group_separation(block[controls, place], block[patients, place])
    ]
    ties = closest_ties(block[controls], ~np.isin(np.arange(len(regions)), suspects), suspects)
    telling = [regions[place] for place, tie in zip(suspects, ties, strict=True) if tie < _TIED]
    which = listed(f"{len(names)} {what}" for what, names in measures.items())
    doubts = (
        (
            len(measures) > 1,
            f"The regions include several kinds of measure: {which}. Each region is scaled relative to the controls, "
            "so they can be used together; to use only one kind, select its columns with ",
            "features",
        ),
        (
            telling,
            f"Each of these columns separates controls from patients almost completely on its own: {listed(telling)}. "
            "If they are not regions, exclude them with ",
            "exclude",
        ),
        (
            len(regions) > _MANY_REGIONS,
            f"Training on {len(regions):,} regions takes a lot of time and memory; the method is designed for 70 to "
            "200. Select the regions of one atlas with ",
            "features",
        ),
    )
    return [
        *(
            Message(
                f"The following are treated as regions, although they look like {what}: {listed(names)}. ",
                _remedy(what, names),
                ".",
            )
            for what, names in groups.items()
        ),
        *(Message(text, Remedy(setting), ".") for applies, text, setting in doubts if applies),
    ]


def _remedy(what: str, names: list[str]) -> Message:
    said = names if len(names) <= _FEW_NAMES else None
    name_them = ("name them with ", Remedy("clinical", said), ", or exclude") if what == "scores" else ("exclude",)
    return Message("If they are not regions, ", *name_them, " them with ", Remedy("exclude", said))
