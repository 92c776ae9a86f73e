"""Leaves out the results that a page, chart or table cannot be made of, so that all others are
published."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import Final, TypeVar

from analysis.base.isolating import UNFORESEEN, culprit, error_of, in_words
from analysis.site.facts.inputs import Inputs

T = TypeVar("T")

LEFT_OUT: Final = "left_out.json"
"""Reasons for results that charts of a study leave out, by `<machine>/<study>`."""


def guarded(
    inputs: Inputs, make: Callable[[Inputs], T], expected: str, study: str = ""
) -> tuple[T, Inputs]:
    """What `make` makes of the inputs, and the inputs that it could use: without the results of
    machines, of one study or of any, with which it fails. `refused` then has file, metric and
    reason.

    Raises the error of `make` if it fails without results, too, if no machine fails by itself, or
    several with all results: then the fault is in the code.
    """
    try:
        return make(inputs), inputs
    except UNFORESEEN:
        nothing = inputs.without(dict.fromkeys(inputs.of_machines, ""))
        if error_of(lambda: make(nothing)):
            raise
        left_out = {
            name: why
            for machine in inputs.machines
            for name, why in _faulty(inputs.only(machine), make, expected, study)
        }
        is_all = len(left_out) == len(_names(inputs, study)) and len(inputs.machines) > 1
        if not left_out or is_all:
            raise
    kept = inputs.without(left_out)
    return make(kept), kept


def _names(inputs: Inputs, study: str) -> list[str]:
    """`<machine>/<study>` of the results of one study or, without its name, of all."""
    return [name for name in inputs.of_machines if not study or name.endswith(f"/{study}")]


def _faulty(
    inputs: Inputs, make: Callable[[Inputs], object], expected: str, study: str
) -> Iterator[tuple[str, str]]:
    """The results of one machine with which `make` fails, and why."""
    if (error := error_of(lambda: make(inputs))) is None:
        return
    names = _names(inputs, study)

    def works(gone: Collection[str]) -> bool:
        return error_of(lambda: make(inputs.without(dict.fromkeys(gone, "")))) is None

    one = culprit(names, works)
    for name in [one] if one else names:
        machine, of_study = name.split("/")
        figures = inputs.tables["summary"]
        figures = figures[(figures["study"] == of_study) & (figures["metric"] != "")]

        def works_without(metrics: Collection[str], machine: str = machine) -> bool:
            return error_of(lambda: make(inputs.only(machine, metrics))) is None

        metric = culprit(figures["metric"].unique().tolist(), works_without) or "samples"
        run = max(run.run for run in inputs.runs if run.study == of_study)
        file = f"{name}/{run}.csv"
        yield name, f"{file}: {metric}: expected {expected}, got {in_words(error)}"


def write_left_out(inputs: Inputs, before: Inputs, folder: Path) -> None:
    """Write LEFT_OUT beside the charts of a study: what `inputs` refuse and `before` did not."""
    found = {name: why for name, why in inputs.refused.items() if name not in before.refused}
    (folder / LEFT_OUT).write_text(json.dumps(found))


def read_left_out(charts: Path) -> Mapping[str, str]:
    """All of LEFT_OUT in the folders of charts."""
    files = sorted(charts.glob(f"*/{LEFT_OUT}"))
    return {name: why for file in files for name, why in json.loads(file.read_text()).items()}
