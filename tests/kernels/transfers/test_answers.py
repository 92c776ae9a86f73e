"""Which call to use: measured times by situation, the command that answers, and the file."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.base.errors import HotpathError
from analysis.study import Case, Variant
from kernels.transfers.advise import main
from kernels.transfers.answering import ANY, Place, measured, simplest_first
from kernels.transfers.charts import fit_line
from kernels.transfers.measured import moves
from tests.repository import STUDIES
from tests.synthetic import write_machine

TRANSFERS = STUDIES["transfers"]
BLOCK = Place("box", "pinned", "h2d", "packed", "packed")


def plausible(variant: Variant, case: Case, metric: str) -> float:
    """A time per piece, or once for a kernel, and the rate of the link."""
    size, count = int(case.values.get("size", 1)), int(case.values.get("count", 1))
    calls = 1 if "gather" in variant.name else count
    return 5e-6 + 1e-6 * calls + size * count / 50e9


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Results of a made-up machine that has measured few variants."""
    folder = tmp_path_factory.mktemp("advise")
    names = ("loop", "packed", "list_loop", "list_gather")
    variants = [TRANSFERS.variant(f"pinned_{name}") for name in names]
    settings: Any = {"rounds": 4, "seconds": plausible, "grid": "default"}
    write_machine(folder, "box", TRANSFERS, variants=variants, **settings)
    return folder


@pytest.fixture
def advise(
    results: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[[str], list[str]]:
    """Runs the command with these words, and returns its lines."""

    def run(words: str) -> list[str]:
        command = ["advise", "--results", str(results), *words.split()]
        monkeypatch.setattr("sys.argv", command)
        main()
        return capsys.readouterr().out.replace("\u202f", ",").splitlines()

    return run


def test_a_question_has_an_answer_a_range_or_one_line(advise: Any) -> None:
    first, use, where, *ways = advise("--size 4KiB --count 256")
    assert first.startswith("box: 256 pieces of 4096 B, h2d, scattered on the host, scattered on")
    assert use.startswith("Use our copy kernel on all SMs: ") and use.endswith(" GB/s.")
    assert where == "Measured: 256 × 4 KiB."
    assert [line.split()[0] for line in ways] == ["pinned_list_gather", "pinned_list_loop"]
    _, use, where, *_ = advise("--size 4KiB --count 1000")
    assert " GB/s to " in use and where == "Measured: 256 × 4 KiB, 4,096 × 4 KiB."
    for words, message in (
        ("--size 8KiB --count 9999", "box.*not measured: .* The nearest measured cell: "),
        ("--size 1001 --count 16", "box.*All measured sizes are multiples of 16 B"),
        ("--size 4KiB --memory registered", "box.*registered memory.*not measured: 1 × 4 KiB$"),
        ("--size 4KiB --machine nosuch", r"--machine: expected one of \['box'\], got 'nosuch'"),
    ):
        with pytest.raises(HotpathError, match=f"^{message}"):
            advise(words)


def test_the_file_has_the_answers_of_a_machine(advise: Any, tmp_path: Path) -> None:
    path = tmp_path / "answers.json"
    assert advise(f"--export {path}") == []
    file = json.loads(path.read_text())
    assert (file["format"], file["machine"]) == ("hotpath-transfers-answers", "box")
    keys = ("memory", "direction", "host", "device", "is_busy")
    wanted = ["pinned", "h2d", "scattered", "scattered", False]
    (table,) = (one for one in file["tables"] if [one[key] for key in keys] == wanted)
    (by_count,) = (inner for low, high, inner in table["spans"] if low <= 4096 <= high)
    (place,) = (inner for low, high, inner in by_count if low <= 256 <= high)
    found = table["answers"][place]
    assert (found["way"], found["cells"]) == ("pinned_list_gather", [[4096, 256]])


def summary(seconds: float) -> pd.DataFrame:
    """A summary in which every variant that moves pieces takes as long."""
    rows = [
        {"machine": "box", "study": "transfers", "variant": variant.name, "case": case.id}
        for variant in TRANSFERS.variants
        for case in variant.cases
        if {"direction", "count"} <= case.values.keys() and "streams" not in case.values
    ]
    table = pd.DataFrame(rows).assign(metric="host_time", unit="s", verified=1, stale=0)
    return table.assign(median=seconds, ci_low=seconds, ci_high=seconds)


def test_no_time_is_shorter_than_the_link_needs() -> None:
    table = summary(1e-9)
    block = measured(TRANSFERS, table, {"box": 50e9})[BLOCK].times
    assert set(block[2**24, 1].values()) == {2**24 / 50e9}
    assert block[1, 1]["pinned_loop"] == 1e-9


def test_one_piece_has_no_layout_and_any_memory_is_readable() -> None:
    found = measured(TRANSFERS, summary(1e-9), {})
    for place, here in found.items():
        assert {count == 1 for _, count in here.times} == {place.layout == "one block"}
    block = found[BLOCK._replace(memory=ANY)]
    known = set(block.times[2**24, 1])
    assert {"pageable_loop", "pinned_loop"} <= known and "write_combined_loop" not in known
    answer = block.answer(2**24, 1)
    assert answer is not None and answer.way == "pageable_loop"
    assert found[Place("box")].answer(528, 16) and not found[Place("box")].answer(520, 16)


def test_ways_of_moving_are_those_that_are_checked_and_no_ways_of_timing() -> None:
    table = summary(1e-6)
    rows = moves(TRANSFERS, table)
    ways = set(rows["variant"])
    assert {"pinned_loop", "pageable_packed", "registered_huge_loop"} <= ways
    assert not {"pinned_nvbandwidth", "pinned_profiled", "pinned_step_on_host"} & ways
    some = ["pinned_list_gather", "pinned_loop", "pinned_list_batch", "pageable_loop"]
    assert simplest_first(some) == [some[3], some[1], some[2], some[0]]
    assert moves(TRANSFERS, table.assign(stale=1)).empty
    assert moves(TRANSFERS, table.assign(verified=0)).empty


@given(latency=st.floats(1e-6, 1e-4), bandwidth=st.floats(1e9, 1e11))
def test_an_exact_line_is_found(latency: float, bandwidth: float) -> None:
    sizes = np.array([1, 65536, 2**20, 2**24, 2**26], dtype=float)
    line = fit_line(sizes, latency + sizes / bandwidth)
    assert line == pytest.approx((latency, bandwidth), rel=1e-4)
