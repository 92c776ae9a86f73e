"""Which call to use: measured times by situation, the command that answers, and the file."""

from __future__ import annotations

import json
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


def test_the_command_answers_in_lines_and_as_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    names = ("loop", "packed", "list_loop", "list_gather")
    settings: Any = {"variants": [TRANSFERS.variant(f"pinned_{name}") for name in names]}
    settings |= {"rounds": 4, "seconds": plausible, "grid": "default"}
    write_machine(tmp_path / "results", "box", TRANSFERS, **settings)

    def advise(words: str) -> list[str]:
        command = ["advise", "--results", str(tmp_path / "results"), *words.split()]
        monkeypatch.setattr("sys.argv", command)
        main()
        return capsys.readouterr().out.replace("\u202f", ",").splitlines()

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
    assert advise(f"--export {tmp_path}/answers.json") == []
    file = json.loads((tmp_path / "answers.json").read_text())
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
    found = measured(TRANSFERS, summary(1e-9), {"box": 50e9})
    for place, here in found.items():  # one piece has no layout
        assert {count == 1 for _, count in here.times} == {place.layout == "one block"}
    assert set(found[BLOCK].times[2**24, 1].values()) == {2**24 / 50e9}
    assert found[BLOCK].times[1, 1]["pinned_loop"] == 1e-9
    block = found[BLOCK._replace(memory=ANY)]
    known, answer = set(block.times[2**24, 1]), block.answer(2**24, 1)
    assert {"pageable_loop", "pinned_loop"} <= known and "write_combined_loop" not in known
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
