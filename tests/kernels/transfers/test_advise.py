"""The command that recommends a call."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable

import pandas as pd
import pytest

from analysis import ROOT
from analysis.base.errors import FieldError, HotpathError
from kernels.transfers.advise import (
    answer,
    main,
    of_machine,
    parse_count,
    parse_pool,
    parse_size,
    recommendation,
    require_pool,
)
from kernels.transfers.adviser import Advice, Job
from kernels.transfers.kinds import MEMORIES, memory_of, method_of
from kernels.transfers.measured import advisers_of, moves
from tests.repository import STUDIES

TRANSFERS = STUDIES["transfers"]


def summary(seconds: Callable[[str, int, int], float | None], machine: str = "box") -> pd.DataFrame:
    """A summary of every variant and case for which `seconds` returns a time."""
    rows = [
        {
            "machine": machine,
            "study": "transfers",
            "variant": variant.name,
            "case": case.id,
            "metric": "host_time",
            "unit": "s",
            "median": time,
            "ci_low": time * 0.99,
            "ci_high": time * 1.01,
            "verified": 1,
            "stale": 0,
        }
        for variant in TRANSFERS.variants
        for case in variant.cases
        if "direction" in case.values
        and "streams" not in case.values
        and "count" in case.values
        and (time := seconds(variant.name, case.number("size"), case.number("count"))) is not None
    ]
    return pd.DataFrame(rows)


def crossing(name: str, size: int, count: int) -> float | None:
    """The loop has overhead per piece, the gather once: they cross between 4 and 16 pieces."""
    if name == "pinned_loop":
        return 2e-6 * count + size * count / 5e10
    if name == "pinned_gather":
        return 20e-6 + size * count / 5e10
    return None


def ask(table: pd.DataFrame, size: int = 1024, count: int = 256, **more: str) -> list[str]:
    job = Job(size, count, host="pitched", device="packed")
    (known,) = of_machine(advisers_of(TRANSFERS, table), more.get("machine", "all"))
    return list(answer(known, job, more.get("memory", "pinned")))


def test_a_measured_cell_is_answered_as_measured() -> None:
    lines = ask(summary(crossing))
    assert lines[0] == (
        "box: 256 x 1024 B, h2d, pitched on the host, packed on the device, idle stream,"
        " pinned memory"
    )
    assert lines[1].startswith("pinned_gather") and lines[2].endswith("measured")
    assert "25.24 µs (24.99 to 25.50 µs)" in lines[1]
    assert lines[-1].startswith("use pinned_gather: 20.5× as fast as pinned_loop, surely faster")


@pytest.mark.parametrize(("count", "best"), [(5, "pinned_loop"), (40, "pinned_gather")])
def test_between_cells_it_models(count: int, best: str) -> None:
    (known,) = advisers_of(TRANSFERS, summary(crossing))
    found = known.advise(Job(3000, count, host="pitched", device="packed", alignment=8))
    assert [one.variant for one in found] == ["pinned_loop"]
    found = known.advise(Job(3008, count, host="pitched", device="packed"))
    assert found[0].variant == best
    assert not found[0].is_measured
    expected = crossing(best, 3008, count)
    assert expected is not None
    assert found[0].seconds == pytest.approx(expected, rel=0.05)
    assert found[0].low < found[0].seconds < found[0].high


@pytest.mark.parametrize(("size", "count"), [(2**40, 1), (1, 100_000), (2**20, 65536)])
def test_it_refuses_beyond_the_grid(size: int, count: int) -> None:
    with pytest.raises(HotpathError, match=r"^not measured on box: .*The nearest measured cell: "):
        ask(summary(crossing), size, count)


def test_a_way_that_was_not_measured_is_an_error() -> None:
    with pytest.raises(HotpathError, match="registered memory: no such way was measured on box"):
        ask(summary(crossing), memory="registered")


def test_overlapping_intervals_are_not_sure() -> None:
    table = summary(lambda name, s, n: {"pinned_loop": 1e-5, "pinned_gather": 1.005e-5}.get(name))
    assert "not surely faster" in ask(table)[-1]


@pytest.mark.parametrize(("column", "value"), [("stale", 1), ("verified", 0)])
def test_stale_and_unchecked_rows_do_not_count(column: str, value: int) -> None:
    assert moves(TRANSFERS, summary(crossing).assign(**{column: value})).empty


def test_an_unknown_machine_is_an_error() -> None:
    with pytest.raises(FieldError, match=r"--machine: expected one of \['box'\], got 'other'"):
        ask(summary(crossing), machine="other")


def test_an_unknown_machine_is_refused_before_results_are_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("kernels.transfers.advise.advisers_in", lambda *_: pytest.fail("read"))
    monkeypatch.setattr("sys.argv", ["advise", "--size", "4KiB", "--machine", "nosuch"])
    with pytest.raises(FieldError, match=r"--machine: expected one of .*, got 'nosuch'"):
        main()


def test_ways_of_timing_are_not_ways_of_moving() -> None:
    rows = moves(TRANSFERS, summary(lambda name, size, count: 1e-6))
    assert {"pinned_loop", "pageable_packed", "registered_huge_loop"} <= set(rows["variant"])
    assert not {"pinned_nvbandwidth", "pinned_profiled", "pinned_step_on_host"} & set(
        rows["variant"]
    )
    keys = ["variant", "size", "count", "direction", "host", "device", "busy"]
    assert not rows.duplicated(keys).any()


def test_managed_memory_is_never_advised() -> None:
    rows = moves(TRANSFERS, summary(lambda name, size, count: 1e-6))
    assert set(rows["memory"]) == set(MEMORIES)


def test_names_of_variants_are_memory_and_method() -> None:
    assert (memory_of("registered_huge_loop"), method_of("registered_huge_loop")) == (
        "registered_huge",
        "loop",
    )
    assert memory_of("managed_loop") == "managed"
    assert memory_of("loop") == ""


@pytest.mark.parametrize(
    ("text", "size"), [("1", 1), ("4KiB", 4096), ("16 MiB", 2**24), ("1GiB", 2**30), ("7B", 7)]
)
def test_sizes_are_read(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "0", "-1", "4KB", "4.5MiB", "x", "9" * 400, "9" * 5000])
def test_other_sizes_are_rejected(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="expected bytes such as"):
        parse_size(text)


def test_a_pool_has_a_unit() -> None:
    assert parse_pool("188MiB") == parse_pool("188 MiB") == 188 * 2**20
    assert parse_pool("200 B") == 200
    expected = "expected bytes with a unit such as 188 MiB or 40 GiB, got "
    for text in ("200", "40 GB", ""):
        with pytest.raises(argparse.ArgumentTypeError, match=f"^{expected}{text}$"):
            parse_pool(text)


def test_a_pool_holds_the_pieces_and_is_covered() -> None:
    rows, results = Job(656, 2048), ROOT / "results"
    with pytest.raises(FieldError, match="--pool: expected at least 1312 KiB, got '1 MiB'"):
        require_pool(["box"], rows, 2**20, results)
    require_pool(["box"], rows, 188 * 2**20, results)
    with pytest.raises(HotpathError, match="not measured on box: lists in a pool of 40 GiB"):
        require_pool(["box"], rows, 40 * 2**30, results)


def test_counts_are_whole() -> None:
    assert parse_count("3") == 3
    assert math.isfinite(parse_count("65536"))
    with pytest.raises(argparse.ArgumentTypeError, match="at least 1, got 0"):
        parse_count("0")
    with pytest.raises(argparse.ArgumentTypeError, match="at least 1, got 999"):
        parse_count("9" * 5000)


def test_a_single_way_is_recommended_without_a_comparison() -> None:
    one = Advice("pinned_loop", 1e-6, 0.9e-6, 1.1e-6, 0.05, is_measured=True)
    assert recommendation([one]) == "use pinned_loop: no other measurements"
