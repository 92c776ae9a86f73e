"""Leaves out the results that a page, chart or table cannot be made of, so that all others are
published."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import Final, TypeVar

from analysis.base.errors import UNFORESEEN, error_of, in_words
from analysis.site.facts.inputs import Inputs, place_of

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
    every = sorted({place_of(run) for run in inputs.runs})
    names = [name for name in every if not study or name.endswith(f"/{study}")]

    def failing(left: Collection[str], metrics: Collection[str] = ()) -> Exception | None:
        """The error with the results of `left` alone, and without these metrics."""
        known = inputs.without({name: "" for name in every if name not in left})
        tables = {
            name: table[~table["metric"].isin([*metrics])]
            for name, table in known.tables.items()
            if "metric" in table
        }
        return error_of(lambda: make(known.with_tables(**tables)))

    def faults(machine: str) -> Iterator[tuple[str, str]]:
        here = [name for name in every if name.startswith(f"{machine}/")]
        if (error := failing(here)) is None:
            return
        suspects = [name for name in names if name in here]
        one = next((name for name in suspects if failing({*here} - {name}) is None), None)
        for name in [one] if one else suspects:
            summary = inputs.tables["summary"]
            metrics = summary["metric"][summary["machine"] + "/" + summary["study"] == name]
            metric = next((m for m in metrics.unique() if failing(here, [m]) is None), None)
            run = max(run.run for run in inputs.runs if place_of(run) == name)
            file = f"{name}/{run}.csv: {metric or 'samples'}"
            yield name, f"{file}: expected {expected}, got {in_words(error)}"

    try:
        return make(inputs), inputs
    except UNFORESEEN:
        if failing(()):
            raise
        left_out = {name: why for machine in inputs.machines for name, why in faults(machine)}
        if not left_out or (len(left_out) == len(names) and len(inputs.machines) > 1):
            raise
    kept = inputs.without(left_out)
    return make(kept), kept


def write_left_out(inputs: Inputs, before: Inputs, folder: Path) -> None:
    """Write LEFT_OUT beside the charts of a study: what `inputs` refuse and `before` did not."""
    found = {name: why for name, why in inputs.refused.items() if name not in before.refused}
    (folder / LEFT_OUT).write_text(json.dumps(found))


def read_left_out(charts: Path) -> Mapping[str, str]:
    """All of LEFT_OUT in the folders of charts."""
    files = sorted(charts.glob(f"*/{LEFT_OUT}"))
    return {name: why for file in files for name, why in json.loads(file.read_text()).items()}
