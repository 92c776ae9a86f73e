"""Hardware counters of variants, in the field's words."""

import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Final

from markupsafe import Markup

from analysis.base.quantities import digits, percent, quantity, whole
from analysis.site.facts.captures import STALE, walk_reads
from analysis.site.facts.study_facts import StudyFacts
from analysis.site.pages.html import NO_HTML, joined, link, table
from analysis.study import Variant

SHOWN_STALLS: Final = 2
_STALL: Final = re.compile(r"smsp__average_warps_issue_stalled_(\w+)_per_issue_active\.ratio")
_MISS: Final = "lts__t_{}_srcunit_tex_aperture_sysmem_lookup_miss.sum"
Counters = Mapping[str, float]
"""Values by the profiler's names, in the units it prints: bytes, ns, counts."""


def _stalls(c: Counters) -> str:
    """The profiler's largest reasons to wait, as shares of all the time warps waited."""
    matches = {_STALL.fullmatch(name): value for name, value in c.items()}
    waits = {match[1]: value for match, value in matches.items() if match}
    waits.pop("selected", None)  # no wait
    total = sum(waits.values())
    largest = sorted(waits, key=lambda name: -waits[name])[:SHOWN_STALLS] if total else []
    return "; ".join(f"{name} {percent(waits[name] / total)}" for name in largest)


def _over(part: str, whole: str) -> Callable[[Counters], str]:
    return lambda c: digits(c[part] / c[whole])


QUANTITIES: Final[Mapping[str, Callable[[Counters], str]]] = {
    "read over the link": lambda c: quantity(c["pcie__read_bytes.sum"], "B"),
    "written to the link": lambda c: quantity(c["pcie__write_bytes.sum"], "B"),
    "requests to host memory": lambda c: whole(c[_MISS.format("requests")]),
    "bytes per request": _over("pcie__read_bytes.sum", _MISS.format("requests")),
    "sectors per request": _over(_MISS.format("sectors"), _MISS.format("requests")),
    "reads of page tables": lambda c: whole(walk_reads(c)),
    "GPU memory read": lambda c: quantity(c["dram__bytes_read.sum"], "B"),
    "GPU memory written": lambda c: quantity(c["dram__bytes_write.sum"], "B"),
    "achieved occupancy": lambda c: percent(
        c["sm__warps_active.avg.pct_of_peak_sustained_active"] / 100
    ),
    "registers a thread": lambda c: whole(c["launch__registers_per_thread"]),
    "warps wait for": _stalls,
    "profiled, not a timing": lambda c: quantity(c["gpu__time_duration.sum"] * 1e-9, "s"),
}
"""Rows of the table of counters. KeyError or ZeroDivisionError: it was not counted."""


def counter_table(facts: StudyFacts, variant: Variant, root: str) -> Markup:
    """Counters of the variant beside those of the one before it, a table a machine that has them;
    `root` leads to the root of the site."""
    before = [facts.study.variant(variant.after)] if variant.after else []
    tables = []
    for machine in facts.machines if variant.on_gpu else ():
        found = {one: facts.capture(machine, one, "counters") for one in (*before, variant)}
        newest = found[variant]
        if not newest.is_there:
            continue
        shown = {
            f"{one.name}{', stale' * (it.state == STALE)}": it.counters
            for one, it in found.items()
            if it.is_there
        }
        rows: dict[str, dict[str, str]] = {}
        for title, write in QUANTITIES.items():
            for name, counters in shown.items():
                with suppress(KeyError, ZeroDivisionError):
                    if text := write(counters):
                        rows.setdefault(title, {"counter": title})[name] = text
        file = newest.path.name
        address = f"{root}data/{machine}/{facts.study.name}/{file}"
        parts = [f"{facts.inputs.called(machine)}, case {newest.case} (", link(address, file), ")"]
        tables.append(table(rows.values(), caption=joined("", parts), numeric=()))
    return NO_HTML.join(tables)
