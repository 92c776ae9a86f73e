"""Hardware counters of a variant beside those of the one before it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from markupsafe import Markup

from analysis.base.quantities import digits, listing, percent, quantity, whole
from analysis.site.facts.captures import Capture
from analysis.site.facts.study_facts import StudyFacts
from analysis.site.pages.captured import titled
from analysis.site.pages.html import NO_HTML, link, table
from analysis.site.pages.page import macro
from analysis.study import Variant, parse_case

SHOWN_STALLS: Final = 2

_STALL: Final = "smsp__average_warps_issue_stalled_{}_per_issue_active.ratio"
_MISS: Final = "lts__t_{}_srcunit_tex_aperture_sysmem_lookup_miss.sum"
_DEVICE: Final = "lts__t_requests{}_aperture_device.sum"
_WAITS: Final = {
    "barrier": "other warps at a barrier",
    "branch_resolving": "a branch",
    "dispatch_stall": "the dispatcher",
    "drain": "completion of its stores",
    "imc_miss": "constants",
    "lg_throttle": "space in the memory queue",
    "long_scoreboard": "data from memory",
    "math_pipe_throttle": "an arithmetic unit",
    "membar": "a memory fence",
    "mio_throttle": "space in the shared-memory queue",
    "no_instruction": "instructions",
    "not_selected": "its turn",
    "short_scoreboard": "data from shared memory",
    "sleeping": "the end of a sleep",
    "tex_throttle": "space in the texture queue",
    "wait": "a fixed latency",
}
"""Causes of waiting, by the profiler's stall reasons; `selected` is no wait."""

Counters = Mapping[str, float]
"""Values by the profiler's names, in the units it prints: bytes, ns, counts."""


def _over(counted: Counters, name: str, of: str) -> float | None:
    return counted[name] / counted[of] if name in counted and counted.get(of) else None


def _bytes(value: float) -> str:
    return quantity(value, "B") if value else "0 B"


def _link(c: Counters, payload: int) -> str:
    read = c.get("pcie__read_bytes.sum")
    if read is None:
        return ""
    share = f", {digits(read / payload)} B per payload byte" if payload else ""
    return f"{_bytes(read)}{share}"


def _requests(c: Counters, _payload: int) -> str:
    count = c.get(_MISS.format("requests"))
    if count is None:
        return ""
    each = _over(c, "pcie__read_bytes.sum", _MISS.format("requests"))
    return whole(count) + (f", {digits(each)} B each" if each is not None else "")


def page_table_reads(c: Counters) -> float | None:
    """Requests for device memory from neither an SM nor the other half of the L2; None if
    they were not counted."""
    names = [_DEVICE.format(source) for source in ("", "_srcnode_gpc", "_srcunit_ltcfabric")]
    if any(name not in c for name in names):
        return None
    every, from_sms, fabric = (c[name] for name in names)
    return max(0.0, every - from_sms - fabric)


def _memory(c: Counters, _payload: int) -> str:
    names = ("dram__bytes_read.sum", "dram__bytes_write.sum")
    if any(name not in c for name in names):
        return ""
    read, written = (_bytes(c[name]) for name in names)
    return f"{read}, {written}"


def _stalls(c: Counters, _payload: int) -> str:
    """The largest reasons as shares of all the time warps waited."""
    waits = {name: c.get(_STALL.format(name), 0.0) for name in _WAITS}
    total = sum(waits.values())
    if not total:
        return ""
    largest = sorted(waits, key=lambda name: -waits[name])[:SHOWN_STALLS]
    return "; ".join(f"{_WAITS[name]} {percent(waits[name] / total)}" for name in largest)


Write = Callable[[Counters, int], str]
"""Writes a quantity, given the payload of the case in bytes; empty where it was not counted."""


def _number(read: Callable[[Counters], float | None], write: Callable[[float], str]) -> Write:
    """A quantity that is one number."""

    def written(counted: Counters, _payload: int) -> str:
        value = read(counted)
        return "" if value is None else write(value)

    return written


def _counter(name: str, write: Callable[[float], str]) -> Write:
    """A quantity that is one counter."""
    return _number(lambda counted: counted.get(name), write)


QUANTITIES: Final[Mapping[str, Write]] = {
    "read over the link": _link,
    "written to the link": _counter("pcie__write_bytes.sum", _bytes),
    "requests to host memory": _requests,
    "sectors per request": _number(
        lambda counted: _over(counted, _MISS.format("sectors"), _MISS.format("requests")), digits
    ),
    "reads of page tables": _number(page_table_reads, whole),
    "GPU memory read, written": _memory,
    "achieved occupancy": _counter(
        "sm__warps_active.avg.pct_of_peak_sustained_active", lambda value: percent(value / 100)
    ),
    "registers a thread": _counter("launch__registers_per_thread", whole),
    "warps wait for": _stalls,
    "profiled, not a timing": _counter(
        "gpu__time_duration.sum", lambda value: quantity(value * 1e-9, "s")
    ),
}
"""Rows of the table of counters."""


class _Column(NamedTuple):
    """Counters of one variant in a table of them."""

    title: str
    counters: Counters
    payload: int


def counter_tables(facts: StudyFacts, variant: Variant, root: str) -> Markup:
    """Counters of the variant beside those of the one before it, a table a machine that has
    them."""
    if not variant.on_gpu:
        return NO_HTML
    return NO_HTML.join(_counters_on(facts, machine, variant, root) for machine in facts.machines)


def _counters_on(facts: StudyFacts, machine: str, variant: Variant, root: str) -> Markup:
    capture = facts.captures.find(machine, variant, "counters")
    if not capture.is_there:
        return Markup()
    shown = [(variant, capture)]
    if variant.after:
        before = facts.study.variant(variant.after)
        earlier = facts.captures.find(machine, before, "counters")
        if earlier.is_there:
            shown.insert(0, (before, earlier))
    counted = [_column(*one) for one in shown]
    rows = [
        [title, *cells]
        for title, write in QUANTITIES.items()
        if any(cells := [write(column.counters, column.payload) for column in counted])
    ]
    cases = listing(list(dict.fromkeys(one.case for _, one in shown)))
    name = capture.path.name
    file = link(f"{root}data/{machine}/{facts.study.name}/{name}", name)
    caption = Markup("Counters on {}, case {} ({})").format(
        facts.inputs.called(machine), cases, file
    )
    return table(["counter", *(column.title for column in counted)], rows, caption=caption)


@macro("page_table_reads")
def walk_tables(facts: StudyFacts, key: str, each: str) -> Markup:
    """Reads of page tables by each variant, from hardware counters.

    key: numeric key of the profiled case: reads are also divided by its value
    each: name of one unit of `key`, such as `row`
    """
    return NO_HTML.join(_walks_on(facts, machine, key, each) for machine in facts.machines)


def _walks_on(facts: StudyFacts, machine: str, key: str, each: str) -> Markup:
    rows: dict[str, list[list[str]]] = {}
    for variant in facts.study.variants:
        capture = facts.captures.find(machine, variant, "counters")
        count = page_table_reads(capture.counters) if capture.is_there else None
        if count is None:
            continue
        read = capture.counters.get("dram__bytes_read.sum", math.nan)
        cells = whole(count), digits(count / int(parse_case(capture.case)[key])), _bytes(read)
        rows.setdefault(capture.case, []).append([titled(variant, capture), *cells])
    columns = ["variant", "reads of page tables", f"for each {each}", "GPU memory read"]
    called = facts.inputs.called(machine)
    return NO_HTML.join(
        table(columns, counted, caption=f"Counted on {called}, case {case}", numeric=columns[1:])
        for case, counted in rows.items()
    )


def _column(variant: Variant, capture: Capture) -> _Column:
    case = variant.case(capture.case)  # which it may no longer have
    payload = case.payload_bytes if case else 0
    return _Column(titled(variant, capture), capture.counters, payload)
