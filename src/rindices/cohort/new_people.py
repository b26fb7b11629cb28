"""New people, checked against what a fitted model expects, with one path for whole tables and batches of rows."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from rindices.cohort.exclusions_and_outliers import Record, unusable
from rindices.cohort.people import People, follow_up_of
from rindices.problems import (
    Blank,
    InputError,
    Message,
    Remedy,
    Text,
    check_choice,
    counted,
    did_you_mean,
    listed,
    refusal,
    shown,
)
from rindices.schema import (
    MOST_MISSING,
    Contract,
    CovariateField,
    DiagnosisField,
    FieldSet,
    IdField,
    RegionField,
    ScoreField,
    VisitField,
    changed_people,
    groups_of,
    years_since_first,
)
from rindices.schema.cells import meant_as_numbers, typed
from rindices.schema.role_guesses import is_region_name
from rindices.settings import ApplySettings
from rindices.tables import (
    Dictionary,
    Source,
    apply_dictionary,
    read_source,
    require_column,
    table_in_memory,
    with_missing_codes,
    with_notes,
)
from rindices.value_kinds import Names, expand_names, paths_of, wanted_names


def read_people(
    table: str | Path | pd.DataFrame,
    contract: Contract,
    settings: ApplySettings | None = None,
    *,
    prepare: Callable[[pd.DataFrame], pd.DataFrame] | None = None,
    progress: Callable[[float], None] | None = None,
    whole: bool = False,
) -> Iterator[People]:
    """Read and check new people from a file, a BIDS dataset or a table in memory, in batches.

    A table with visits, clinical scores or joined tables, a BIDS dataset and a table that `prepare` changes are read
    whole. Problems of all rows are raised together at the end; people yielded before that should be discarded.

    Parameters
    ----------
    table
        A file, the folder of a BIDS dataset or its ``participants.tsv``; or a table in memory.
    contract
        What the model expects.
    settings
        How the table is to be read.
    prepare
        Function that changes the table after it has been read and before it is checked.
    progress
        Called with the proportion of the table that has been read.
    whole
        Whether to yield all people at once.

    Raises
    ------
    InputError
        If a file cannot be read, or the table does not fit the model.

    Examples
    --------
    >>> contract = Contract(("a", "b"), (1.0, 2.0), (2.0, 3.0), (3.0, 4.0))
    >>> table = pd.DataFrame({"participant_id": ["p1", "p2"], "b": [3.0, 3.1], "a": [2.0, 5.0]})
    >>> next(read_people(table, contract)).flags.tolist()
    ['', '1 region outside the training range (a)']
    """
    settings = settings or ApplySettings()
    text_columns = (settings.id or contract.id_column, contract.diagnosis_column)
    if isinstance(table, pd.DataFrame):
        frame = typed(table_in_memory(table, text_columns[0]), text_columns)
        source = Source(frame, None, Dictionary(), (), id_column=text_columns[0])
    else:
        source = read_source(
            table,
            id_column=text_columns[0],
            diagnosis_column=contract.diagnosis_column,
            visit_column=settings.visit,
            join=paths_of(settings.join),
            whole=bool(
                prepare
                or settings.visit
                or wanted_names(settings.clinical)
                or follow_up_of(settings)
                or paths_of(settings.join)
            ),
        )
    frame, file = source.frame if prepare is None else prepare(source.frame), source.table
    columns = [str(name) for name in (frame if file is None else file).columns]
    check = _Check(columns, contract, replace(settings, id=source.id_column), source.dictionary)
    batches: Iterable[pd.DataFrame] = [frame]
    if file is not None:
        as_text = {*text_columns, source.id_column}
        parts = (typed(batch, as_text, decimal_comma=file.decimal_comma) for batch in file.batches())
        batches = [file.read(as_text)] if whole or check.visit else parts
    with with_notes(source.notes):
        for batch in batches:
            people = check.observe(batch)
            if people is not None:
                told = () if file is None else file.notes
                yield replace(people, notes=(*source.notes, *told, *people.notes))
            if progress is not None and file is not None:
                progress(file.progress)
        check.finish()


class _Check:
    """The fields of a model's contract, for the rows of one table."""

    def __init__(
        self, columns: Sequence[str], contract: Contract, settings: ApplySettings, dictionary: Dictionary
    ) -> None:
        check_choice(Remedy("new_sites"), settings.new_sites, ("refuse", "uncorrected"))
        self.visit = settings.visit or (contract.visit_column if contract.visit_column in columns else None)
        self._contract, self._settings = contract, settings
        kept = {str(name) for name in (settings.id, contract.diagnosis_column, self.visit, contract.site_column)}
        self._dictionary = with_missing_codes(dictionary, columns, wanted_names(settings.missing), kept)
        covariates = [spec.name for spec in contract.covariates]
        scores, self._free = self._named(columns, {*kept, *covariates, *contract.features})
        rename = Message("Rename the id column, or name it with ", Remedy("id", Blank("COLUMN")), ".")
        needed: list[tuple[str, str, Text]] = [
            (str(settings.id), "the participant ids", rename),
            *([(self.visit, "the visit", Message("Correct ", Remedy("visit"), "."))] if self.visit else []),
            *(
                (name, "a covariate of the model", "Add the column, coded as in the training table.")
                for name in covariates
            ),
        ]
        for name, role, remedy in needed:
            require_column(columns, name, role, remedy)
        self._fields = FieldSet(
            IdField(str(settings.id), self.visit),
            VisitField(self.visit or ""),
            DiagnosisField(contract.diagnosis_column),
            [
                CovariateField(
                    spec.name, spec, new_sites=settings.new_sites if spec.name == contract.site_column else None
                )
                for spec in contract.covariates
            ],
            RegionField(contract.features, contract.ranges, unit=contract.unit, fills=not settings.complete_only),
            [ScoreField(name) for name in scores],
        )
        self._unknown: list[str] | None = None
        self._reasons = Counter[str]()

    def _named(self, columns: Sequence[str], needed: Collection[str]) -> tuple[tuple[str, ...], list[str]]:
        """Return the columns of scores and follow-up, and unknown columns; refuse a table that lacks regions."""
        regions, chosen = self._contract.features, dict[str, tuple[str, ...]]()
        self._absent = missing = [name for name in regions if name not in columns]
        free = [name for name in columns if name not in needed]
        renamed = "".join([did_you_mean(name, free) for name in missing][:1])
        many = len(missing) > MOST_MISSING * len(regions)
        if missing and self._settings.id in columns and (many or renamed or self._settings.complete_only):
            fifth = (
                "if more than a fifth of the regions are missing"
                if many and not self._settings.complete_only
                else f"without {'it' if len(missing) == 1 else 'them'}"
            )
            raise InputError(
                f"The model needs {counted(len(regions), 'region')}, but the table lacks {len(missing)}: "
                f"{listed(missing)}.{renamed}\n"
                f"Add the missing column{'' if len(missing) == 1 else 's'}, named as in the training table; people "
                f"cannot be scored {fifth}."
            )
        asked: dict[str, Names] = {"exclude": self._settings.exclude, "clinical": self._settings.clinical}
        for source, wanted in (asked | follow_up_of(self._settings)).items():
            chosen[source] = expand_names(wanted, columns, source=source, pattern_columns=free)
            if taken := [name for name in chosen[source] if name in needed]:
                raise InputError(
                    f"The model needs column {taken[0]!r} for another purpose.\nRemove it from ", Remedy(source), "."
                )
        scores = tuple(dict.fromkeys(name for source in chosen if source != "exclude" for name in chosen[source]))
        without_role = {*self._contract.ignored_columns}.union(*chosen.values())
        return scores, [name for name in free if name not in without_role and is_region_name(name)]

    def observe(self, batch: pd.DataFrame) -> People | None:
        """Return the people in some rows; None if these or earlier rows have problems, or no one is left."""
        batch, _, strange = apply_dictionary(batch.assign(**dict.fromkeys(self._absent, np.nan)), self._dictionary)
        if problems := [one for one in strange if {*one.where} & {spec.name for spec in self._contract.covariates}]:
            raise refusal(problems)
        if self._unknown is None:  # judged by the first rows
            self._unknown = [name for name in self._free if meant_as_numbers(batch[name])]
        observed = self._fields.observe(batch)
        if unusable(self._fields.check(), drop_missing=self._settings.drop_missing):
            return None
        record = Record(len(batch))
        record.leave_out_incomplete(observed, self._contract.features)
        self._reasons.update(record.reason.tolist())
        if not record.used.any():
            return None
        contract, used = self._contract, record.used
        group = groups_of(observed.labels, contract.control_labels, contract.patient_labels)
        covariates, line = observed.background[used], observed.timeline.take(used)
        ignored = [f"Columns unknown to the model are ignored: {listed(self._unknown)}."] if self._unknown else []
        years, years_from, notes = years_since_first(line, batch[used], self.visit)
        return People(
            features=pd.DataFrame(observed.regions.values[used], line.ids, list(contract.features)),
            covariates=covariates,
            diagnosis=observed.labels[used].rename("diagnosis"),
            group=group[used],
            flags=self._flags(observed.regions.values[used], covariates),
            clinical=observed.scores[used],
            visit=line.visits,
            years=years,
            years_from=years_from,
            first_visit=line.first(),
            left_out=record.table(observed, group)[~used],
            notes=(
                *record.warning(),
                *notes,
                *changed_people(line.ids, group[used], batch[used]),
                *self._fields.notes,
                *ignored,
                *self._missing(observed.regions.values[used]),
            ),
        )

    def _flags(self, block: NDArray[np.float64], covariates: pd.DataFrame) -> pd.Series:
        """Describe, for each person, what lies outside the training range and whether the site is unknown."""
        regions = np.array(self._contract.features, dtype=object)
        parts = [
            [f"{counted(len(names), 'region')} outside the training range ({listed(names, 5)})"] if len(names) else []
            for names in (regions[outside] for outside in self._contract.outside(block))
        ]
        for spec in self._contract.covariates:
            for part, value in zip(parts, covariates[spec.name], strict=True):
                if spec.categories is not None and value not in spec.categories:
                    part.append(f"site {value} is unknown to the model, so its effect was not removed")
                elif spec.limits is not None and not spec.limits[0] <= value <= spec.limits[1]:
                    limit = f"{shown(spec.minimum)} to {shown(spec.maximum)}"
                    part.append(f"{spec.name} {shown(value)} outside the training range ({limit})")
        return pd.Series(["; ".join(part) for part in parts], index=covariates.index, name="flags")

    def _missing(self, block: NDArray[np.float64]) -> list[str]:
        """Report that regions are missing, in everyone or in some; the number for each person is in the flags."""
        drawn = "Missing values are imputed from the other regions and the covariates, which widens the intervals"
        if self._absent:
            return [
                f"The table lacks {len(self._absent)} of the model's "
                f"{counted(len(self._contract.features), 'region')}: {listed(self._absent)}. {drawn}."
            ]
        return (
            [f"Not everyone has values for all regions. {drawn}. The flags column lists each person's missing regions."]
            if np.isnan(block).any()
            else []
        )

    def finish(self) -> None:
        """Refuse the table if anything was wrong with any of its rows."""
        if problems := unusable(self._fields.check(), drop_missing=self._settings.drop_missing):
            raise refusal(problems)
        if not self._reasons[""]:
            why = listed(f"{reason} ({number:,})" for reason, number in self._reasons.items() if reason)
            raise InputError(
                f"No one is left to score, because everyone was excluded: {why}.\n"
                "Fill in or correct the cells, or add people."
            )
