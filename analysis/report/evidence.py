"""Why a variant is as fast as it is: counters, timelines, machine code, and the way to their files.

Captures are read from beside the samples; what became of each is in the provenance.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from html import escape
from pathlib import Path
from typing import Any, Final, cast

import pandas as pd

from analysis.facts.captures import STALE, find_capture, kernel_name, read_counters
from analysis.facts.inputs import Inputs, VariantKey
from analysis.facts.points import Context, Row
from analysis.profile.ncu import STALLS
from analysis.quantities import digits, listing, percent, quantity, whole
from analysis.report.html import Markup, code, link, table
from analysis.source import fingerprint
from analysis.study import Variant
from analysis.toolchain.sass import WIDTHS

CAPTURES: Final = {"ncu": "counters", "timeline": "timeline"}

SHOWN_STALLS: Final = 2

_STALL: Final = "smsp__average_warps_issue_stalled_{}_per_issue_active.ratio"
_MISS: Final = "lts__t_{}_srcunit_tex_aperture_sysmem_lookup_miss.sum"
_WAITS: Final = {
    "barrier": "other warps at a barrier",
    "branch_resolving": "a branch",
    "dispatch_stall": "the dispatcher",
    "drain": "stores to leave",
    "imc_miss": "constants",
    "lg_throttle": "room in the queue of memory accesses",
    "long_scoreboard": "data from memory",
    "math_pipe_throttle": "an arithmetic unit",
    "membar": "a memory fence",
    "mio_throttle": "room in the queue of shared memory",
    "no_instruction": "instructions",
    "not_selected": "its turn",
    "short_scoreboard": "data from shared memory",
    "sleeping": "the end of a sleep",
    "tex_throttle": "room in the texture queue",
    "wait": "a fixed latency",
}
"""What a warp waits for, by the reasons of the profiler; `selected` is no wait."""

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


def _written(c: Counters, _payload: int) -> str:
    written = c.get("pcie__write_bytes.sum")
    return "" if written is None else _bytes(written)


def _requests(c: Counters, _payload: int) -> str:
    count = c.get(_MISS.format("requests"))
    if count is None:
        return ""
    each = _over(c, "pcie__read_bytes.sum", _MISS.format("requests"))
    return whole(count) + (f", {digits(each)} B each" if each is not None else "")


def _sectors(c: Counters, _payload: int) -> str:
    ratio = _over(c, _MISS.format("sectors"), _MISS.format("requests"))
    return "" if ratio is None else digits(ratio)


def _memory(c: Counters, _payload: int) -> str:
    names = ("dram__bytes_read.sum", "dram__bytes_write.sum")
    if any(name not in c for name in names):
        return ""
    read, written = (_bytes(c[name]) for name in names)
    return f"{read}, {written}"


def _occupancy(c: Counters, _payload: int) -> str:
    value = c.get("sm__warps_active.avg.pct_of_peak_sustained_active")
    return "" if value is None else percent(value / 100)


def _registers(c: Counters, _payload: int) -> str:
    value = c.get("launch__registers_per_thread")
    return "" if value is None else whole(value)


def _stalls(c: Counters, _payload: int) -> str:
    """The largest reasons as shares of all the time warps waited."""
    waits = {name: c.get(_STALL.format(name), 0.0) for name in STALLS if name in _WAITS}
    total = sum(waits.values())
    if not total:
        return ""
    largest = sorted(waits, key=lambda name: -waits[name])[:SHOWN_STALLS]
    return "; ".join(f"{_WAITS[name]} {percent(waits[name] / total)}" for name in largest)


def _duration(c: Counters, _payload: int) -> str:
    value = c.get("gpu__time_duration.sum")
    return "" if value is None else quantity(value * 1e-9, "s")


QUANTITIES: Final[Mapping[str, Callable[[Counters, int], str]]] = {
    "read over the link": _link,
    "written to the link": _written,
    "requests to host memory": _requests,
    "sectors per request": _sectors,
    "GPU memory read, written": _memory,
    "achieved occupancy": _occupancy,
    "registers a thread": _registers,
    "warps wait for": _stalls,
    "profiled, not a timing": _duration,
}
"""Rows of the table of counters: what it says of them, given the payload of the case in bytes."""


def counters(context: Context, variant: Variant, root: str) -> str:
    """Counters of the variant beside those of the one before it, a table a machine that has them;
    HTML."""
    if not variant.on_gpu:
        return ""
    parts = [_counters_on(context, machine, variant, root) for machine in context.machines]
    return "\n\n".join(part for part in parts if part)


def _counters_on(context: Context, machine: str, variant: Variant, root: str) -> str:
    own = find_capture(context, machine, variant, "ncu")
    if not own.is_there:
        return ""
    shown = [(variant, own)]
    if variant.after:
        before = context.study.variant(variant.after)
        capture = find_capture(context, machine, before, "ncu")
        if capture.is_there:
            shown.insert(0, (before, capture))
    values = [(_payload(v, capture.case), read_counters(capture.path)) for v, capture in shown]
    names = [f"{v.name}, stale" if c.state == STALE else v.name for v, c in shown]
    rows = [
        [title, *cells]
        for title, say in QUANTITIES.items()
        if any(cells := [say(counted, payload) for payload, counted in values])
    ]
    cases = listing(list(dict.fromkeys(capture.case for _, capture in shown)))
    file = link(f"{root}data/{machine}/{context.study.name}/{own.path.name}", own.path.name)
    caption = Markup(f"Counters on {escape(machine)}, case {escape(cases)} ({file})")
    return table(["counter", *names], rows, caption=caption)


def _payload(variant: Variant, case: str) -> int:
    """Bytes the case delivers; 0 where the variant no longer has it."""
    return next((known.payload_bytes for known in variant.cases if known.id == case), 0)


def gaps(context: Context, variant: Variant) -> list[str]:
    """What was not captured of the variant, or is stale, and why: a sentence a reason."""
    if not variant.on_gpu:
        return []
    said = []
    missing: dict[tuple[str, str], list[str]] = {}  # machines by what is missing and why
    for machine in context.machines:
        reasons: dict[str, list[str]] = {}
        for kind, what in CAPTURES.items():
            capture = find_capture(context, machine, variant, kind)
            if not capture.is_there:
                reasons.setdefault(capture.reason, []).append(f"no {what}")
            elif capture.state == STALE and kind == "timeline":
                said.append(f"The timeline on {machine} is stale: the code has changed since.")
        for reason, whats in reasons.items():
            missing.setdefault((" and ".join(whats), reason), []).append(machine)
    for (what, reason), machines in missing.items():
        said.append(f"{what.capitalize()} on {listing(machines)}: {escape(reason)}.")
    return said


def read_machine_code(path: Path) -> pd.DataFrame:
    """The pipeline's machine_code.csv; empty where it is not there."""
    if not path.exists() or not path.stat().st_size:
        return pd.DataFrame({"study": [], "variant": []})
    texts = dict.fromkeys(("study", "variant", "arch", "kernel", "reason"), "str")
    return pd.read_csv(path, dtype=texts, keep_default_na=False, na_values={"load_8": [""]})


def machine_code(context: Context, variant: Variant, built: pd.DataFrame) -> str:
    """Loads and stores of the variant's kernels beside those of the one before; HTML."""
    if built.empty:
        return ""
    names = [name for name in (variant.after, variant.name) if name]
    study = built[built["study"] == context.study.name]
    own = study[study["variant"] == variant.name]
    if own.empty:
        return ""
    reasons = [reason for reason in own["reason"] if reason]
    if reasons:
        return f"The machine code was not read: {escape(reasons[0])}."
    rows = [
        [
            code(row["variant"]),
            *([kernel_name(row["kernel"])] if own["kernel"].nunique() > 1 else []),
            row["arch"],
            *(_accesses(row, what) for what in ("load", "store")),
            whole(float(row["loads_in_flight"])),
            _bytes(float(row["in_flight_bytes"])),
        ]
        for row in _records(study[study["variant"].isin(names) & (study["kernel"] != "")])
    ]
    columns = ["machine code of", *(["kernel"] if own["kernel"].nunique() > 1 else [])]
    columns += ["for", "loads", "stores", "loads under way", "bytes under way a warp"]
    return table(columns, rows, numeric=columns[-2:])


def _records(rows: pd.DataFrame) -> list[Row]:
    return cast(list[Row], rows.to_dict("records"))


def _accesses(row: Row, what: str) -> str:
    """`1 of 8 B, 41 of 16 B`: instructions by what each lane moves."""
    counts = {width // 8: int(row[f"{what}_{width}"]) for width in WIDTHS}
    said = [
        f"{count} of {size} B".replace(" ", "\u00a0") for size, count in counts.items() if count
    ]
    return ", ".join(said) or "none"


def stage_sources(
    inputs: Inputs, files: Mapping[VariantKey, list[str]], data: Path
) -> dict[VariantKey, list[str]]:
    """Put the source of every variant with samples beside them; `files` with its name added.

    The copy is today's file. It begins with the commit measured, and its name says `changed` where
    the hash in the provenance is not today's.
    """
    staged = {}
    for key, names in files.items():
        machine, study, name = key
        known = inputs.studies.get(study)
        if known is None or name not in known.variant_names:
            staged[key] = names
            continue
        variant, entry = known.variant(name), inputs.provenance[key]
        is_current = entry["source_sha256"] == fingerprint(known, variant)
        state = "source" if is_current else "source-changed"
        file = data / machine / study / f"{name}.{state}{variant.path.suffix}"
        file.write_text(_origin(entry, variant, is_current) + variant.path.read_text())
        staged[key] = [*names, file.name]
    return staged


def _origin(entry: Mapping[str, Any], variant: Variant, is_current: bool) -> str:
    mark = "#" if variant.path.suffix == ".py" else "//"
    dirty = " with changes" if entry.get("dirty") else ""
    since = "unchanged since" if is_current else "this or a file it needs has changed since: stale"
    return f"{mark} Measured at commit {entry['commit']}{dirty}; {since}.\n"
