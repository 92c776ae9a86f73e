"""The tables of the adviser's misses: how well it does, and what limits it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from analysis.api.charts import PageTable, StudyFacts, machines_by_evidence
from analysis.api.quantities import percent, ratio, whole

from .ceilings import FAR, OTHER_HOSTS, OTHER_ROUNDS, SMALL_BYTES, Score, scores
from .chart_parts import binary
from .held_out import NEAR, NEAR_TIME

NOT_JUDGED: Final = "No machine has judged the adviser yet."
TOO_FEW: Final = "Not known: too few rounds or hosts have measured the same cells."
WANTED: Final[Mapping[str, float]] = {"near": 0.95, "not_far": 1.0, "timed": 0.9}
"""Shares of cells that the claims demand, by the field of a Score."""
NEAR_TEXT, FAR_TEXT, TIME_TEXT = (f"{share * 100:g} %" for share in (NEAR, FAR, NEAR_TIME))
DEMANDS: Final[Mapping[str, str]] = {
    "near": f"chosen way within {NEAR_TEXT} of the fastest",
    "not_far": f"chosen way at most {FAR_TEXT} slower",
    "timed": f"predicted time within {TIME_TEXT}",
}
SOURCES: Final[Mapping[str, str]] = {
    OTHER_ROUNDS: "times of other rounds of the same run, in the same cells",
    OTHER_HOSTS: "times of other hosts, in the same cells",
    "results": "the adviser, from results",
    "calibration": "the adviser, from a calibration",
    "constants": "vLLM's constants",
}
ADVISERS: Final = ("results", "calibration")
NOISE: Final = "noise of one host"
HOSTS: Final = "differences between hosts"
REST: Final = "cells that were not measured"
"""Names of the parts of what an adviser misses."""


@dataclass(frozen=True)
class Gap:
    """The shortfall of an adviser: parts whose sum is `wanted - reached`, all shares of cells."""

    wanted: float
    reached: float
    parts: Mapping[str, float]

    @property
    def main(self) -> str:
        """The largest part; empty if nothing is missed."""
        largest = max(self.parts, key=lambda name: self.parts[name])
        return largest if self.parts[largest] > 0 else ""


def gap(wanted: float, reached: float, same_host: float, other_hosts: float | None) -> Gap:
    """Split a shortfall by two ceilings. Each is raised to `reached` if it is lower.

    same_host: reached by other times of the same host
    other_hosts: reached by the times of other hosts; None for an adviser that was calibrated on
        the host itself
    """
    hosts = same_host if other_hosts is None else other_hosts
    reach = min(reached, wanted)
    by_hosts = min(max(hosts, reach), wanted)
    by_host = min(max(same_host, by_hosts), wanted)
    parts = {NOISE: wanted - by_host, HOSTS: by_host - by_hosts, REST: by_hosts - reach}
    return Gap(wanted, reached, parts)


def limits(facts: StudyFacts) -> PageTable:
    """A row for each machine, adviser and demand: the parts of what is missed, and the cause."""
    columns = ["machine", "advice from", "demand", "wanted", "reached"]
    columns += [*(f"lost to {part}" for part in (NOISE, HOSTS, REST)), "cause"]
    rows = [
        [machine, source, DEMANDS[measure], *limit(found, source, measure)]
        for machine, found in _judged(facts)
        for source in ADVISERS
        if source in found
        for measure in WANTED
    ]
    return PageTable(columns, rows, NOT_JUDGED, columns[3:8])


def limit(found: Mapping[str, Score], source: str, measure: str) -> list[str]:
    """Cells of a row: the demand, the share reached, the parts of the shortfall, and its cause."""
    wanted, reached = WANTED[measure], float(getattr(found[source], measure))
    shares = [percent(wanted), percent(reached)]
    if not {OTHER_ROUNDS, OTHER_HOSTS} <= set(found):
        return [*shares, "", "", "", TOO_FEW]
    rounds, hosts = (float(getattr(found[name], measure)) for name in (OTHER_ROUNDS, OTHER_HOSTS))
    if math.isnan(rounds) or math.isnan(hosts):
        return [*shares, "", "", "", TOO_FEW]
    # A host's own times are no worse a guide than those of others. Only the cells of which several
    # rounds were measured can make them look worse.
    same_host = max(rounds, hosts)
    missed = gap(wanted, reached, same_host, hosts if source == "results" else None)
    cause = _cause(missed.main, same_host, hosts, hosts if source == "results" else same_host)
    if missed.main and wanted < 1 and not _is_sure(wanted, reached, found[source].cells):
        cause = f"Perhaps chance, with {found[source].cells} cells. {cause}"
    return [*shares, *map(_part, missed.parts.values()), cause]


def _is_sure(wanted: float, reached: float, cells: int) -> bool:
    """Whether two standard errors of a share of `cells` are less than what is missed."""
    return wanted - reached > 2 * math.sqrt(reached * (1 - reached) / cells)


def _part(share: float) -> str:
    return percent(share) if round(share, 3) > 0 else ""


def _cause(main: str, same_host: float, other_hosts: float, known: float) -> str:
    """The largest part of what is missed as a sentence with its measured ceiling.

    known: reached by the times that the adviser could know, in the same cells
    """
    return {
        "": "Nothing is missed.",
        NOISE: f"Noise: measured times of the same cells reach {percent(same_host)} at best.",
        HOSTS: f"Hosts differ: times of other hosts in the same cells reach {percent(other_hosts)},"
        f" times of the host itself {percent(same_host)}.",
        REST: f"The model: measured times of the same cells reach {percent(known)}. The adviser"
        " loses the rest in cells that were not measured.",
    }[main]


def evidence(facts: StudyFacts) -> PageTable:
    """A row for each machine and source of choices: the adviser, and the ceilings."""
    small = binary(SMALL_BYTES)
    columns = ["machine", "chosen by", "cells", "runs", f"within {NEAR_TEXT} of the fastest"]
    columns += [f"more than {FAR_TEXT} slower", "worst choice", f"time within {TIME_TEXT}"]
    columns += [f"the same below {small}", f"the same from {small}", "most frequent miss"]
    rows = [
        [
            machine,
            SOURCES[source],
            whole(score.cells),
            whole(score.runs),
            percent(score.near),
            percent(1 - score.not_far),
            ratio(score.worst),
            *(_share(share) for share in (score.timed, score.timed_small, score.timed_large)),
            score.confused,
        ]
        for machine, found in _judged(facts)
        for source, score in found.items()
    ]
    return PageTable(columns, rows, NOT_JUDGED, columns[2:10])


def _share(share: float) -> str:
    return "" if math.isnan(share) else percent(share)


def _judged(facts: StudyFacts) -> Iterator[tuple[str, Mapping[str, Score]]]:
    """The name and the scores of every machine where the adviser was judged."""
    found = scores(facts.inputs.results, facts.study)
    for machine in machines_by_evidence(facts):
        if machine in found:
            yield facts.inputs.called(machine), found[machine]
