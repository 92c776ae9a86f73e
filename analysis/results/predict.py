"""Predict times on one machine from those on another, before the first has measured them.

    python -m analysis.results.predict nvidia-h100-80gb-hbm3 nvidia-h200

Reads build/summary.csv and build/runs.csv. Writes one file into analysis/results/predictions/, to
commit before the second machine is measured. An existing file is not replaced.

A predicted time is that of the first machine times a factor: the ratio of a reference time that
both machines have, on the first machine from the same run. What binds the time decides the
reference.
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from analysis import ROOT
from analysis.base.cli import existing_folder, fail_in_one_line, program
from analysis.base.errors import HotpathError
from analysis.base.records import read_records, write_records
from analysis.results.tables.rows import (
    RUN_SEPARATOR,
    RunRow,
    SummaryRow,
    read_table,
    rows_of,
)
from analysis.study import Case, Study, discover

FOLDER: Final = Path(__file__).parent / "predictions"
STUDY: Final = "transfers"
METRIC: Final = "host_time"
LINK_SHARE: Final = 0.8
"""A time is bound by the link from this share of the rate of one large copy."""

Key = tuple[str, str, str, str]
"""Machine, variant, case and metric."""


@dataclass(frozen=True)
class Rule:
    """What binds a time, and the variant and case of the reference time."""

    name: str
    reason: str
    variant: str
    case: str


LINK: Final = "link"
RULES: Final[Mapping[str, Rule]] = {
    rule.name: rule
    for rule in (
        Rule(
            LINK,
            "bound by the link: the time of one copy of 64 MiB",
            "pinned_loop",
            "size=67108864,count=1,direction={direction}",
        ),
        Rule(
            "sm_reads",
            "bound by launch and reads of SMs: a gather of 256 pieces of 1 KiB",
            "pinned_gather",
            "size=1024,count=256,direction=h2d",
        ),
        Rule(
            "packing",
            "bound by the CPU's packing: 256 packed pieces of 1 KiB",
            "pinned_packed",
            "size=1024,count=256,direction=h2d",
        ),
        Rule(
            "graph",
            "bound by the copies of a graph: a graph of 256 copies of 64 bytes",
            "pinned_graph",
            "size=64,count=256,direction=h2d",
        ),
        Rule(
            "driver",
            "bound by the driver's CPU time: 256 single copies of 64 bytes",
            "pinned_loop",
            "size=64,count=256,direction=h2d",
        ),
    )
}
"""Rules by name."""
_BY_VARIANT: Final = (
    ("pinned_list_packed", "packing"),
    ("pinned_list_gather", "sm_reads"),
    ("pinned_list_bulk", "sm_reads"),
    ("pinned_list_graph", "graph"),
    ("pinned_list_loop", "driver"),
    ("pinned_list_batch", "driver"),
)
"""Rule of a variant that the link does not bind, by the first part of its name."""


@dataclass(frozen=True)
class Predicted:
    """A predicted time, `seconds`: the first machine's time in `run` times `factor`, by `rule`.
    `made` and `commit` say when and from which sources; `model` is the first machine."""

    machine: str
    study: str
    variant: str
    case: str
    metric: str
    seconds: float
    rule: str
    factor: float
    model: str
    run: str
    made: str
    commit: str


def predict(
    summary: Sequence[SummaryRow],
    runs: Sequence[RunRow],
    study: Study,
    model: str,
    machine: str,
    made: str,
    commit: str,
) -> list[Predicted]:
    """Every time of a variant that `model` has measured and `machine` has not."""
    rows = {
        (row.machine, row.variant, row.case, row.metric): row
        for row in summary
        if row.study == study.name and not row.stale
    }
    newest = {(row.machine, row.variant, row.case): row.run for row in runs if row.study == STUDY}
    known = {row.variant for row in summary if row.machine == machine and row.study == study.name}
    found = []
    for variant in study.variants:
        name = _rule_of(variant.name)
        if name is None or variant.name in known:
            continue
        for case in variant.cases:
            row = rows.get((model, variant.name, case.id, METRIC))
            if row is None:
                continue
            rule = RULES[LINK] if _is_link_bound(rows, model, row, case) else RULES[name]
            reference = rule.case.format(direction=case.values["direction"])
            run = newest[model, variant.name, case.id]
            factor = _factor(rows, newest, rule.variant, reference, model, machine, run)
            if factor is not None:
                seconds = _newest_figure(row) * factor
                place = (machine, study.name, variant.name, case.id, METRIC)
                found.append(
                    Predicted(*place, seconds, rule.name, factor, model, run, made, commit)
                )
    return found


def _rule_of(variant: str) -> str | None:
    """The rule of a variant that the link does not bind; None for one without a rule."""
    return next((rule for start, rule in _BY_VARIANT if variant.startswith(start)), None)


def _is_link_bound(rows: Mapping[Key, SummaryRow], model: str, row: SummaryRow, case: Case) -> bool:
    """Whether the payload's rate is at least LINK_SHARE of that of one large copy."""
    rule = RULES[LINK]
    reference = rule.case.format(direction=case.values["direction"])
    copy = rows.get((model, rule.variant, reference, METRIC))
    if copy is None:
        return False
    size = int(reference.partition("size=")[2].partition(",")[0])
    return case.payload_bytes / _newest_figure(row) >= LINK_SHARE * size / copy.median


def _factor(
    rows: Mapping[Key, SummaryRow],
    newest: Mapping[tuple[str, str, str], str],
    variant: str,
    case: str,
    model: str,
    machine: str,
    run: str,
) -> float | None:
    """The median of `machine` over the time of `model` in `run`; None if either is missing."""
    one = rows.get((model, variant, case, METRIC))
    other = rows.get((machine, variant, case, METRIC))
    if one is None or other is None or newest[model, variant, case] != run:
        return None
    return other.median / _newest_figure(one)


def _newest_figure(row: SummaryRow) -> float:
    return float(row.by_run.split(RUN_SEPARATOR)[-1])


def read_predictions() -> list[Predicted]:
    """All committed predictions."""
    return [one for path in sorted(FOLDER.glob("*.csv")) for one in read_records(path, Predicted)]


def main() -> None:
    parser = program("analysis.results.predict", __doc__)
    parser.add_argument("model", help="machine that the predictions follow from")
    parser.add_argument("machine", help="machine to predict")
    parser.add_argument("--tables", type=existing_folder, default=ROOT / "build")
    arguments = parser.parse_args()
    path = FOLDER / f"{arguments.machine}.csv"
    if path.exists():
        raise HotpathError(f"{path}: expected no predictions yet, got a file; keep it as it is")
    head = ["git", "-C", str(ROOT), "rev-parse", "HEAD"]
    found = predict(
        rows_of(read_table([arguments.tables / "summary.csv"], SummaryRow), SummaryRow),
        rows_of(read_table([arguments.tables / "runs.csv"], RunRow), RunRow),
        discover()[STUDY],
        arguments.model,
        arguments.machine,
        made=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        commit=subprocess.run(head, check=True, capture_output=True, text=True).stdout.strip(),
    )
    if not found:
        raise HotpathError(f"{arguments.machine}: expected unmeasured variants, got none")
    path.parent.mkdir(exist_ok=True)
    write_records(path, Predicted, found, ".7g")
    print(f"{len(found)} predictions in {path}")


if __name__ == "__main__":
    fail_in_one_line(main)
