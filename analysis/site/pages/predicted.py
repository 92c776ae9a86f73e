"""Times predicted for a machine before it measured them, beside what it then measured."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from analysis.base.equivalence import EQUAL_WITHIN
from analysis.base.quantities import digits, percent, quantity, signed_percent
from analysis.results.predict import RULES, Predicted, read_predictions
from analysis.site.facts.study_facts import StudyFacts
from analysis.site.pages.html import code, folded_tables, moment, table
from analysis.site.pages.page import macro

NOT_YET = "not measured yet"


@dataclass(frozen=True)
class Outcome:
    """A prediction and the measured time in s, NaN while there is none."""

    predicted: Predicted
    measured: float

    @property
    def is_measured(self) -> bool:
        return not math.isnan(self.measured)

    @property
    def error(self) -> float:
        """Measured over predicted time, minus 1."""
        return self.measured / self.predicted.seconds - 1

    @property
    def is_hit(self) -> bool:
        return abs(self.error) <= EQUAL_WITHIN


@macro("machine_predictions")
def machine_predictions(studies: Mapping[str, StudyFacts]) -> str:
    """Times that were predicted for a machine before it measured them, and the share of hits."""
    return predictions_text(studies, outcomes(studies, read_predictions()))


def outcomes(studies: Mapping[str, StudyFacts], predictions: Sequence[Predicted]) -> list[Outcome]:
    """The predictions for studies that exist."""
    return [Outcome(one, _measured(studies, one)) for one in predictions if one.study in studies]


def _measured(studies: Mapping[str, StudyFacts], one: Predicted) -> float:
    row = studies[one.study].figures.find(one.machine, one.variant, one.case, one.metric)
    return math.nan if row is None or row.stale else row.median


def predictions_text(studies: Mapping[str, StudyFacts], found: Sequence[Outcome]) -> str:
    """A sentence and tables for each predicted machine."""
    machines = dict.fromkeys(one.predicted.machine for one in found)
    parts = [
        _of_machine(studies, [one for one in found if one.predicted.machine == machine])
        for machine in machines
    ]
    return "\n\n".join(parts) or "Nothing has been predicted for a machine yet."


def _of_machine(studies: Mapping[str, StudyFacts], found: Sequence[Outcome]) -> str:
    first = found[0].predicted
    called = next(iter(studies.values())).inputs.called
    sentences = [
        f"{len(found)} times on {called(first.machine)} were predicted from {called(first.model)},"
        f" at {moment(first.made)} with the sources of commit {code(first.commit[:10])}, before"
        f" {called(first.machine)} had measured any of these variants.",
        _score(found),
    ]
    groups: dict[Markup | str, list[list[object]]] = {}
    rules = []
    for name, rule in RULES.items():
        of_rule = [one for one in found if one.predicted.rule == name]
        if of_rule:
            rules.append([rule.reason, _factors(of_rule), str(len(of_rule)), *_counts(of_rule)])
            groups[rule.reason] = [_row(one) for one in of_rule]
    columns = ["rule: what binds the time, and the reference", "factors", "predictions"]
    columns += ["measured", "hits"]
    cells = ["variant", "case", "predicted", "measured", "measured vs. predicted", "hit"]
    every = folded_tables(cells, groups, numeric=cells[2:5])
    return f"{' '.join(sentences)}\n\n{table(columns, rules, numeric=columns[1:])}\n\n{every}"


def _score(found: Sequence[Outcome]) -> str:
    """The share of hits among the measured ones."""
    measured = [one for one in found if one.is_measured]
    margin = f"{EQUAL_WITHIN * 100:g} %"
    if not measured:
        return f"None is measured yet. A hit is a time within {margin} of its prediction."
    hits = sum(one.is_hit for one in measured)
    rest = len(found) - len(measured)
    return (
        f"{hits} of {len(measured)} measured times ({percent(hits / len(measured))}) are within"
        f" {margin} of their predictions." + (f" Not measured yet: {rest}." if rest else "")
    )


def _factors(found: Sequence[Outcome]) -> str:
    """The factors, one for each direction of a copy."""
    return ", ".join(dict.fromkeys(digits(one.predicted.factor) for one in found))


def _counts(found: Sequence[Outcome]) -> list[str]:
    measured = [one for one in found if one.is_measured]
    if not measured:
        return [NOT_YET, ""]
    return [str(len(measured)), str(sum(one.is_hit for one in measured))]


def _row(one: Outcome) -> list[object]:
    predicted = one.predicted
    start = [code(predicted.variant), predicted.case, quantity(predicted.seconds, "s")]
    if not one.is_measured:
        return [*start, NOT_YET, "", ""]
    hit = "yes" if one.is_hit else "no"
    return [*start, quantity(one.measured, "s"), signed_percent(one.error), hit]
