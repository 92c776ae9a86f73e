"""What other programs and pages rely on: columns of files and constants."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from analysis.base import statistics
from analysis.base.records import columns
from analysis.compare import judge
from analysis.results import disturbance, store
from analysis.results.answers import judged, rule
from analysis.results.model import fit
from analysis.results.store import keys, published, records, runs, samples
from analysis.results.tables import rows
from analysis.site.facts import basis
from analysis.toolchain import reports

CONSTANTS: Final[Mapping[str, Any]] = {
    "CONFIDENCE": statistics.CONFIDENCE,
    "MIN_RUNS": statistics.MIN_RUNS,
    "MIN_HOSTS": basis.MIN_HOSTS,
    "WIDE": basis.WIDE,
    "MIN_ROUNDS": statistics.MIN_ROUNDS,
    "RESAMPLES": fit.RESAMPLES,
    "SAME_WITHIN": statistics.SAME_WITHIN,
    "EQUAL_WITHIN": judge.EQUAL_WITHIN,
    "BUSY_CORES": disturbance.BUSY_CORES,
    "STEAL_SHARE": disturbance.STEAL_SHARE,
    "METHOD_VERSION": store.METHOD_VERSION,
    "MIN_UNWARMED_MS": round(store.MIN_UNWARMED_S * 1e3),
    "KEPT_RUNS": runs.KEPT_RUNS,
    "CSV_LIMIT_MIB": samples.CSV_LIMIT_BYTES // 2**20,
    "JSON_LIMIT_KIB": runs.JSON_LIMIT_BYTES // 2**10,
    "SMALLEST": f"{keys.SMALLEST:g}",
    "LARGEST": f"{keys.LARGEST:g}",
    "ANSWER_WITHIN": rule.WITHIN,
    "CLOSE": judged.CLOSE,
    "LONGEST_S": f"{keys.LONGEST_S:,g}",
    "MAX_FILES": runs.MAX_FILES,
    "MACHINE_LIMIT_SAMPLES": samples.MACHINE_LIMIT_SAMPLES,
}
"""Those that pages speak of."""

FILES: Final[Mapping[str, Sequence[str]]] = {
    "<run>.csv": columns(samples.Row),
    "<run>.telemetry.csv": columns(records.Reading),
    "<run>.counters.csv": columns(records.Counter),
    "<run>.timeline.csv": columns(records.Event),
    "published/<study>.csv": columns(published.PrintedRow),
    **{f"{name}.csv": [*types] for name, types in rows.TABLES.items()},
    "resources.csv": [*reports.RESOURCES],
    "machine_code.csv": [*reports.MACHINE_CODE],
}
"""Columns of every file that others may read, by its name as the contract has it."""
