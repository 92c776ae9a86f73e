"""Tables of pages: reads of page tables from hardware counters, Engram rows, and questions."""

from __future__ import annotations

import math
from contextlib import suppress
from typing import Final

from analysis.api.charts import STALE, PageTable, StudyFacts, walk_reads
from analysis.api.quantities import digits, quantity, whole
from analysis.api.study import parse_case

from .engram_tables import engram, sorting_pays
from .upstream_tables import upstream


def page_table_reads(facts: StudyFacts) -> PageTable:
    """A row for each variant whose reads of page tables were counted on a machine."""
    rows = []
    for machine in facts.machines:
        for variant in facts.study.variants:
            capture = facts.capture(machine, variant, "counters")
            counters = capture.counters if capture.is_there else {}
            with suppress(KeyError):
                count = walk_reads(counters)
                read = counters.get("dram__bytes_read.sum", math.nan)
                called = facts.inputs.called(machine)
                per_row = count / int(parse_case(capture.case)["rows"])
                name = f"{variant.name}, stale" if capture.state == STALE else variant.name
                figures = [whole(count), digits(per_row), quantity(read, "B")]
                rows.append([name, called, capture.case, *figures])
    columns = ["variant", "machine", "case", "reads of page tables", "for each row"]
    columns.append("GPU memory read")
    return PageTable(columns, rows, "No profiler has counted them yet.", columns[3:])


TABLES: Final = {
    "page_table_reads": page_table_reads,
    "sorting_pays": sorting_pays,
    "engram": engram,
    "upstream": upstream,
}
