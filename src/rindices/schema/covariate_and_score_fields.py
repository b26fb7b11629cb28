"""Covariates, the site and clinical scores: numbers or categories, spellings, unknown values, minimum controls."""

from typing import Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pydantic import model_validator
from pydantic.dataclasses import dataclass

from rindices.problems import ADAPT, Message, Problem, Remedy, counted, listed, shown
from rindices.schema.cells import LARGEST, as_known, meant_as_numbers, plain_code, text_of
from rindices.schema.field import CORRECT, DIGITS, STRICT, BadCells, NumberField, Roster, Seen, kept_quantile
from rindices.schema.role_guesses import SEX_NAMES, USUAL_NAMES
from rindices.schema.units_and_impossible_values import impossible_covariate, suspected_codes

MIN_SITE_CONTROLS = 5  # with fewer, a site's shift and scale are mostly chance
# Share of a covariate's range by which it may be exceeded: with 80 people, a sixteenth lies beyond each of the two
# quantiles, and these training people should not be flagged.
_MARGIN = 0.2
_SEXES = {"female": "f", "woman": "f", "male": "m", "man": "m"}


@dataclass(frozen=True, config=STRICT)
class CovariateSpec:
    """What a model expects of one covariate: categories or a range.

    Attributes
    ----------
    name
        Name of the column.
    categories
        The categories seen in training; None for a number.
    minimum, maximum
        Range of a number in training: two quantiles, rounded; None for categories.
    quantile
        Share of the training people below the minimum and above the maximum; None for categories and codes, and in
        imported models, where these are the smallest and the largest value.
    codes
        The two values of a number that had only two in training (sex as 0 and 1); otherwise None.

    Examples
    --------
    >>> CovariateField("sex").learn(np.array([0.0, 1.0, 1.0]))
    CovariateSpec(name='sex', categories=None, minimum=0.0, maximum=1.0, codes=(0.0, 1.0), quantile=None)
    >>> CovariateField("age").learn(np.linspace(50, 90, 200)).limits
    (43.4, 96.6)
    """

    name: str
    categories: tuple[str, ...] | None = None
    minimum: float | None = None
    maximum: float | None = None
    codes: tuple[float, float] | None = None
    quantile: float | None = None

    @property
    def limits(self) -> tuple[float, float] | None:
        """Values beyond which new people are flagged; None for categories."""
        if self.minimum is None or self.maximum is None:
            return None
        margin = _MARGIN * (self.maximum - self.minimum) if self.quantile else 0.0
        return self.minimum - margin, self.maximum + margin

    @model_validator(mode="after")
    def _is_consistent(self) -> Self:
        if self.categories is not None:
            if not self.categories or len(set(self.categories)) != len(self.categories):
                raise ValueError(f"{self.name!r} should have at least one category and no duplicates")
        elif self.minimum is None or self.maximum is None or self.minimum > self.maximum:
            raise ValueError(f"{self.name!r} should have categories, or a minimum no greater than its maximum")
        return self


class CovariateField(NumberField):
    """A covariate: a number or a category, learned from a training table or specified by a model.

    Parameters
    ----------
    name
        Its column.
    spec
        What a model expects of it; None for a training table.
    is_category
        Whether its numbers are labels, because a data dictionary says so or it is the site.
    is_divisor
        Whether regions are divided by it.
    new_sites
        For the site of new people: whether unknown sites are accepted ("uncorrected") or not ("refuse").
    """

    kind = "covariate"

    def __init__(
        self,
        name: str,
        spec: CovariateSpec | None = None,
        *,
        is_category: bool = False,
        is_divisor: bool = False,
        new_sites: str | None = None,
    ) -> None:
        super().__init__(name, reference=None if spec is None else np.array([[spec.minimum], [spec.maximum]], float))
        self._spec, self._is_site, self._is_divisor = spec, new_sites is not None, is_divisor
        # Numbers that label sites or scanners: a slope over them would be meaningless.
        labels = is_category or name.casefold() in USUAL_NAMES["site"] or None
        self._is_category = labels if spec is None else spec.categories is not None
        self._known = None if spec is None or new_sites == "uncorrected" else spec.categories or spec.codes
        self._unknown = BadCells()

    def learn(self, values: NDArray) -> CovariateSpec:
        """Summarise the values of the training people as categories, two codes, or a range."""
        if values.dtype.kind != "f":
            return CovariateSpec(self.name, categories=tuple(sorted({*map(plain_code, values)})))
        different, quantile = np.unique(values).tolist(), kept_quantile(len(values))
        low, high = different[0], different[-1]
        if len(different) <= 2:
            return CovariateSpec(
                self.name, minimum=low, maximum=high, codes=(low, high) if len(different) == 2 else None
            )
        # The nearest values, so that whole numbers stay whole; any value of 0 or less shows that 0 is possible.
        least, most = (
            float(f"{end:.{DIGITS}g}") for end in np.quantile(values, [quantile, 1 - quantile], method="nearest")
        )
        return CovariateSpec(self.name, minimum=min(least, 0.0) if low <= 0 else least, maximum=most, quantile=quantile)

    def observe(self, batch: pd.DataFrame, roster: Roster) -> Seen:
        """Return the covariate in some rows: numbers, or categories as text."""
        column = batch[self.name]
        if self._is_category is None:  # decided from the first rows, which are a whole training table
            self._is_category = not meant_as_numbers(column)
        if self._is_category:
            text = text_of(column).map(plain_code, na_action="ignore").astype(object)
            seen = Seen.of(text.to_numpy())
            self.missing.add(seen.missing, self.columns, roster, lambda *_: "")
            if self._spec is None:
                self._look_for_spellings(text, roster)
        else:
            seen = super().observe(batch, roster)
        if self._known is not None:
            values = pd.Series(seen.values[:, 0])
            same = pd.Series(as_known(values, [*map(str, self._known)])) if self._is_category else values
            bad = (values.notna() & ~same.isin(list(self._known))).to_numpy()[:, None]
            self._unknown.add(bad, self.columns, roster, lambda row, _: shown(values.iloc[row]))
        return seen

    def _impossible(self, block: NDArray[np.float64], reference: NDArray[np.float64]) -> NDArray[np.bool_]:
        marked = impossible_covariate(self.name, block[:, 0], reference[:, 0], is_divisor=self._is_divisor)
        return marked[:, None] & (self._spec is None or self._spec.codes is None)

    def _look_for_spellings(self, column: pd.Series, roster: Roster) -> None:
        """Find categories that differ only in case, spaces or wording, which would be treated as separate."""
        counts = column.value_counts()  # the most frequent first
        usual: dict[str, str] = {}
        for level in map(str, counts.index):
            plain = " ".join(level.split()).casefold()
            same = usual.setdefault(_SEXES.get(plain, plain) if self.name.casefold() in SEX_NAMES else plain, level)
            if same != level:
                first = roster.at(int(np.flatnonzero((column == level).to_numpy())[0]))
                there, here = (counted(int(counts[name]), "person", "people") for name in (same, level))
                self.problems.append(
                    Problem(
                        f"Column {self.name!r} has {same!r} ({there}) and {level!r} ({here}, the first in {first}), "
                        "which would count as two categories.",
                        ("write both the same way",),
                    )
                )

    def check(self) -> list[Problem]:
        """Return the problems of the covariate."""
        problems = [problem._replace(where=()) for problem in super().check()] + self.problems
        spec = self._spec
        if (self.text.counts or self.impossible.counts) and problems and spec is not None:
            limits = f"{'mostly ' if spec.quantile else ''}{shown(spec.minimum)} to {shown(spec.maximum)}"
            was = " and ".join(map(shown, spec.codes or ())) or limits
            problems[0] = Problem(
                Message(problems[0].what, f"\nCovariate {self.name!r} was numeric during training ({was})."),
                ("code the covariate as in the training table", *problems[0].remedies),
            )
        if self._unknown.counts:
            place, value = self._unknown.first[self.name]
            text = (
                f"Covariate {self.name!r} was coded {listed(map(shown, self._known or ()), 10)} in training, but "
                f"contains {listed(sorted(self._unknown.values), 10)} in this table.\n"
                f"The first unknown value is {value!r}, in {place}; "
                f"{counted(self._unknown.counts[self.name], 'person has', 'people have')} such a value."
            )
            of_site = (
                Message("adapt the model with controls from the new site (", ADAPT, ")"),
                Message("leave the effect of this site uncorrected with ", Remedy("new_sites", "uncorrected")),
            )
            others = of_site if self._is_site else ("remove these people",)
            problems.append(Problem(text, ("code the covariate as in the training table", *others)))
        return problems


class ScoreField(NumberField):
    """A clinical score: a number or a category, with gaps. Suspected missing-value codes are treated as gaps."""

    kind = "clinical score"

    def observe(self, batch: pd.DataFrame, roster: Roster) -> Seen:
        """Return the score in some rows: numbers, or categories as text, with gaps as NaN."""
        column, text = batch[self.name], text_of(batch[self.name])
        if text.notna().any() and not meant_as_numbers(column):
            return Seen.of(text.to_numpy())
        values = super().observe(batch, roster).values[:, 0]
        suspects = suspected_codes(values, values)
        for code in np.unique(values[suspects]).tolist():
            self.notes.append(
                Message(
                    f"{counted(int((values == code).sum()), 'person has', 'people have')} {self.name} = "
                    f"{shown(code)}, which looks like a code for a missing value and is not used. If it is such a "
                    "code, declare it with ",
                    Remedy("missing", [shown(code)]),
                    ", or leave these cells empty.",
                )
            )
        return Seen.of(np.where(suspects | (np.abs(values) > LARGEST), np.nan, values))

    def check(self) -> list[Problem]:
        """Return the problems of the score: text among numbers, infinite numbers."""
        infinite = Problem(f"These values are infinite: {', '.join(self.impossible.cells)}.", (CORRECT,))
        return self._text_problems() + ([infinite] if self.impossible.cells else [])


class BackgroundField(ScoreField):
    """A column without a role, such as age, in which groups should not differ; text among its numbers is a gap."""

    def observe(self, batch: pd.DataFrame, roster: Roster) -> Seen:
        """Return the column in some rows: numbers, or categories as text, with gaps as NaN."""
        if self.name.casefold() in USUAL_NAMES["site"]:  # a mean of site numbers would be meaningless, too
            return Seen.of(text_of(batch[self.name]).to_numpy())
        seen = super().observe(batch, roster)
        if number := self.text.counts[self.name]:
            row = self.text.first[self.name][0].partition(" (")[0]  # without the id
            self.notes.append(
                f"Column {self.name!r} contains text among its numbers ({counted(number, 'cell')}, the first in "
                f"{row}) and is not used."
            )
        return seen

    def check(self) -> list[Problem]:
        """Return no problems, because a table can be used without this column."""
        return []
