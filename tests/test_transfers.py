"""The transfers' memory, pieces and checks, and every way of moving that needs no kernel."""

from __future__ import annotations

import ctypes
import importlib.util
import json
import mmap
import re
import subprocess
import sysconfig
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pybind11
import pytest
import vl_convert
from hypothesis import given
from hypothesis import strategies as st

from analysis import ROOT
from analysis.build.toolchain import find_toolchain
from analysis.charts import study_charts
from analysis.charts.writing import write_chart
from analysis.errors import FieldError
from analysis.measure import host_memory
from analysis.measure.cell import Operation, Skip
from analysis.measure.modules import COMPILED_NAME, load_workload
from analysis.report.inputs import load_inputs
from analysis.report.points import Context
from analysis.results.store import add_run
from analysis.results.tables import write_tables
from analysis.study import Case, Variant, discover
from kernels.transfers.advise import MEMORIES, memory_of, method_of
from tests.synthetic import provenance_of, samples_of, write_machine

TRANSFERS = discover()["transfers"]
WORKLOADS = load_workload(TRANSFERS)
STUB = Path(__file__).parent / "stub_cudart.cpp"
HOST_METHODS = ["pinned_loop", "pinned_packed", "pinned_2d", "pinned_batch", "pinned_graph"]


def move(size: int, count: int, direction: str) -> Case:
    values = {"size": size, "count": count, "direction": direction}
    return Case(values, size * count, "default")


class FakeDevice:
    """A device's memory in host memory."""

    def __init__(self, shape: tuple[int, ...], dtype: Any, what: str) -> None:
        self.array = np.empty(shape, dtype)
        self.nbytes = self.array.nbytes
        self.pointer = int(self.array.ctypes.data)

    def fill(self, byte: int) -> None:
        self.array[:] = byte

    def put(self, host: np.ndarray) -> None:
        self.array[:] = host

    def get(self, out: np.ndarray) -> np.ndarray:
        out[:] = self.array
        return out


class FakeHost:
    """Host memory that is of any kind by name only."""

    def __init__(self, kind: str, size: int) -> None:
        self.kind, self.bytes = kind, np.empty(size, np.uint8)
        self.pointer = int(self.bytes.ctypes.data)

    def close(self) -> None:
        self.bytes[:] = 0


@pytest.fixture
def workload(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(WORKLOADS, "DeviceArray", FakeDevice)
    monkeypatch.setattr(WORKLOADS, "HostMemory", FakeHost)
    return WORKLOADS.Workload({"work_rounds": 3}, np.random.default_rng(0))


class Mover:
    """A method in Python, as bindings.cpp offers one, and what can go wrong with it."""

    def __init__(self, fault: str, host: int, device: int, landing: int, **pieces: Any) -> None:
        self.fault, self.pieces = fault, SimpleNamespace(**pieces)
        self.host, self.device, self.landing = host, device, landing

    def launch(self, stream: int) -> None:
        p = self.pieces
        for i in range(p.count):
            ends = self.host + i * p.pitch, self.device + i * p.size
            source, target = ends if p.to_device else ends[::-1]
            size = p.size
            if i == p.count - 1:
                size -= self.fault == "short"
                size += self.fault == "long"
            data = bytes_at(source, size).copy()
            if self.fault == "bit" and i == 0:
                data[-1] ^= 1
            bytes_at(target, size)[:] = data
            if self.fault == "before" and i == 0:
                bytes_at(target - 1, 1)[:] = 0
        if self.fault == "gap" and not p.to_device:
            bytes_at(self.host + p.size, 1)[:] = 0


def bytes_at(address: int, size: int) -> np.ndarray:
    return np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(address))


def python_module(fault: str = "") -> Any:
    def bind(host: int, device: int, landing: int = 0, **pieces: Any) -> Mover:
        return Mover(fault, host, device, landing, **pieces)

    return SimpleNamespace(memory="pinned", bind=bind)


def outcome(operation: Operation) -> str | None:
    operation.poison()
    operation.launch(0)
    return operation.check()


@pytest.mark.parametrize("direction", ["h2d", "d2h"])
@pytest.mark.parametrize(("size", "count"), [(1, 1), (3, 5), (64, 17), (5000, 3)])
def test_a_right_method_passes(workload: Any, direction: str, size: int, count: int) -> None:
    workload.prepare(move(size, count, direction))
    variant = TRANSFERS.variant("pinned_loop")
    assert outcome(workload.bind(variant, python_module())) is None


@pytest.mark.parametrize(
    ("direction", "fault"),
    [
        *(("h2d", fault) for fault in ("short", "long", "bit", "before")),
        *(("d2h", fault) for fault in ("short", "long", "bit", "before", "gap")),
    ],
)
def test_the_check_finds_a_wrong_method(workload: Any, direction: str, fault: str) -> None:
    workload.prepare(move(32, 4, direction))
    operation = workload.bind(TRANSFERS.variant("pinned_loop"), python_module(fault))
    assert outcome(operation) is not None
    # Nor may what an earlier launch left behind make it pass.
    workload.prepare(move(32, 4, direction))
    assert outcome(workload.bind(TRANSFERS.variant("pinned_loop"), python_module())) is None


def test_what_never_ran_does_not_pass(workload: Any) -> None:
    for direction in ("h2d", "d2h"):
        workload.prepare(move(16, 2, direction))
        operation = workload.bind(TRANSFERS.variant("pinned_loop"), python_module())
        operation.poison()
        assert operation.check() is not None


@pytest.mark.parametrize(
    ("case", "field"),
    [
        (move(0, 1, "h2d"), "case size=0,count=1,direction=h2d: size"),
        (move(1, 0, "h2d"), "case size=1,count=0,direction=h2d: count"),
        (move(1, 1, "up"), "direction"),
        (Case({"size": "big", "count": 1, "direction": "h2d"}, 1, "full"), "case size=big"),
    ],
)
def test_pieces_that_cannot_be_are_an_error(workload: Any, case: Case, field: str) -> None:
    workload.prepare(Case(case.values, 1, "default"))
    with pytest.raises(FieldError) as caught:
        workload.bind(TRANSFERS.variant("pinned_loop"), python_module())
    assert caught.value.field.startswith(field)


def test_a_held_stream_is_only_for_what_can_be_enqueued(workload: Any) -> None:
    def waits(name: str, memory: str, count: int) -> bool | None:
        workload.prepare(move(16, count, "h2d"))
        module = python_module()
        module.memory = memory
        return workload.bind(TRANSFERS.variant(name), module).waits

    assert waits("pinned_loop", "pinned", 32) is False
    assert waits("pinned_loop", "pinned", 33) is True
    assert waits("pageable_loop", "pageable", 1) is True
    assert waits("pinned_packed", "pinned", 1) is True


def test_no_huge_pages_skips_the_case(workload: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(kind: str, size: int) -> None:
        raise host_memory.NoHugePages("none")

    monkeypatch.setattr(WORKLOADS, "HostMemory", refuse)
    workload.prepare(move(16, 1, "h2d"))
    with pytest.raises(Skip, match="none"):
        workload.bind(TRANSFERS.variant("registered_huge_loop"), python_module())


def test_pinning_is_refused_where_memory_is_short(
    workload: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = SimpleNamespace(available=100)
    monkeypatch.setattr(WORKLOADS.psutil, "virtual_memory", lambda: memory)
    assert WORKLOADS.Pressure("registered_huge", 25).check() is not None  # nothing ran
    with pytest.raises(Skip, match="26 B is more than a quarter of 100 B"):
        WORKLOADS.Pressure("registered_huge", 26)


def test_a_price_is_that_of_its_parts(workload: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    locked = {"answer": True}

    class Locked(FakeHost):
        seconds: ClassVar = {"allocate": 0.5, "register": 0.25, "free": 0.125}

        def is_page_locked(self) -> bool:
            return locked["answer"]

    monkeypatch.setattr(WORKLOADS, "HostMemory", Locked)
    workload.prepare(Case({"size": 5000}, 0, "default"))
    operation = workload.bind(TRANSFERS.variant("pinned_price"), python_module())
    operation.poison()
    assert operation.check() is not None
    assert outcome(operation) is None
    samples = operation.own_samples(0, 2)
    assert samples["allocate_time"] == [0.5, 0.5]
    assert set(samples) == {
        f"{part}_time" for part in ("allocate", "register", "free", "write", "read")
    }
    locked["answer"] = False
    assert outcome(operation) == "page-locked: expected True, got False"


def test_work_beside_pinned_memory_is_checked(workload: Any) -> None:
    workload.prepare(Case({"pinned_bytes": 4096}, 0, "full"))
    operation = workload.bind(TRANSFERS.variant("pinned_pressure"), python_module())
    assert outcome(operation) is None
    assert len(operation.own_samples(0, 3)["work_time"]) == 3


@given(words=st.lists(st.integers(0, 2**32 - 1), min_size=1, max_size=8), rounds=st.integers(0, 9))
def test_work_is_its_rounds_one_by_one(words: list[int], rounds: int) -> None:
    payload = np.array(words, np.uint32).view(np.uint8)
    expected = words
    for _ in range(rounds):
        expected = [(w * WORKLOADS.FACTOR + WORKLOADS.TERM) % 2**32 for w in expected]
    assert WORKLOADS.worked_on(payload, rounds).view(np.uint32).tolist() == expected


def test_the_work_is_the_same_on_both_sides() -> None:
    for header in ("round_trip.h", "step.h"):
        text = (TRANSFERS.folder / header).read_text()
        constants = dict(re.findall(r"constexpr uint32_t (k\w+) = (\d+);", text))
        assert constants == {"kFactor": str(WORKLOADS.FACTOR), "kTerm": str(WORKLOADS.TERM)}


def test_variants_are_named_after_their_memory() -> None:
    for variant in TRANSFERS.variants:
        text = variant.path.read_text()
        found = re.search(r"Memory kMemory = Memory::k(\w+);|^memory = \"(\w+)\"", text, re.M)
        assert found, variant.name
        written = found[2] or re.sub(r"(?<!^)(?=[A-Z])", "_", found[1]).lower()
        assert variant.name.startswith(f"{written}_")
        if written in MEMORIES:
            assert memory_of(variant.name) == written


# The host code of variants, with a CUDA runtime that copies at once.


@pytest.fixture(scope="module")
def stubbed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    folder, toolchain = tmp_path_factory.mktemp("stub"), find_toolchain()
    includes = [toolchain.include, pybind11.get_include(), sysconfig.get_path("include")]
    command = [toolchain.cxx, "-std=c++17", "-O0", "-fPIC", *(f"-isystem{i}" for i in includes)]

    def compiled(source: Path) -> Path:
        out = folder / f"{source.stem}.o"
        if not out.exists():
            subprocess.run([*command, "-c", str(source), "-o", str(out)], check=True)
        return out

    def load(name: str) -> Any:
        sources = STUB, TRANSFERS.folder / "bindings.cpp", TRANSFERS.variant(name).path
        out = folder / f"{name}.so"
        objects = [str(compiled(source)) for source in sources]
        subprocess.run([toolchain.cxx, "-shared", *objects, "-o", str(out)], check=True)
        spec = importlib.util.spec_from_file_location(f"{out}.{COMPILED_NAME}", out)
        assert spec and spec.loader
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    yield load


@pytest.mark.parametrize("name", HOST_METHODS)
def test_host_methods_move_every_piece(workload: Any, stubbed: Any, name: str) -> None:
    module = stubbed(name)
    assert module.memory == "pinned"
    for direction in ("h2d", "d2h"):
        for size, count in ((1, 1), (7, 9), (4096, 3), (5000, 40)):
            workload.prepare(move(size, count, direction))
            operation = workload.bind(TRANSFERS.variant(name), module)
            for _ in range(2):
                assert outcome(operation) is None
            assert operation.own_samples(0, 1) == {}


def test_a_step_by_the_cpu_changes_the_data_in_place(workload: Any, stubbed: Any) -> None:
    workload.prepare(move(4096, 1, "in_place"))
    name = "pinned_step_on_host"
    operation = workload.bind(TRANSFERS.variant(name), stubbed(name))
    for _ in range(2):
        assert outcome(operation) is None
    (seconds,) = operation.own_samples(0, 1)["step_time"]
    assert seconds > 0
    operation.launch(0)
    assert operation.check() is not None  # a second step on the same data


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"size": 0}, "size: expected at least 1, got 0"),
        ({"count": 0}, "count: expected at least 1, got 0"),
        ({"pitch": 7}, "pitch: expected at least the size, got 7"),
        ({"blocks": -1}, "blocks: expected at least 0, got -1"),
        ({"host": 0}, "host: expected an address, got 0"),
    ],
)
def test_bindings_refuse_what_cannot_be(stubbed: Any, change: dict[str, int], message: str) -> None:
    arguments = {"host": 16, "device": 16, "size": 8, "pitch": 8} | change
    with pytest.raises(ValueError, match=message):
        stubbed("pinned_loop").bind(**arguments)


# Kinds of host memory.


class FakeCudart:
    """Records calls; page-locked is what was registered."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []
        success = host_memory.cudart.cudaError_t.cudaSuccess
        self._ok = (success,)

    def __getattr__(self, name: str) -> Any:
        def call(*arguments: Any) -> tuple[Any, ...]:
            self.calls.append((name, *arguments))
            return self._ok

        return call


def test_pageable_memory_is_there_until_it_is_closed() -> None:
    memory = host_memory.HostMemory("pageable", 10_000)
    assert (memory.bytes.shape, memory.bytes.dtype) == ((10_000,), np.uint8)
    assert memory.pointer % host_memory.HUGE_PAGE == 0
    memory.bytes[:] = 7
    assert int(memory.bytes.sum()) == 70_000
    memory.close()
    memory.close()
    assert set(memory.seconds) == {"allocate", "free"}
    assert min(memory.seconds.values()) > 0


def test_registered_memory_is_unregistered_before_it_is_freed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fake = FakeCudart()
    monkeypatch.setattr(host_memory, "cudart", fake)
    memory = host_memory.HostMemory("registered", 5000)
    pointer = memory.pointer
    memory.close()
    names = [("cudaHostRegister", pointer, 5000, 0), ("cudaHostUnregister", pointer)]
    assert fake.calls == names
    assert set(memory.seconds) == {"allocate", "register", "free"}


def test_memory_that_got_no_huge_pages_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_memory, "cudart", FakeCudart())
    monkeypatch.setattr(host_memory, "huge_bytes", lambda pointer: 0)
    with pytest.raises(host_memory.NoHugePages, match="0 of 4194304 B"):
        host_memory.HostMemory("registered_huge", 4 * 2**20)


def test_a_kernel_without_huge_pages_has_pages_of_the_base_size(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Mapping(mmap.mmap):
        def madvise(self, *_: Any) -> None:
            raise OSError(22, "Invalid argument")

    monkeypatch.setattr(host_memory.mmap, "mmap", Mapping)
    monkeypatch.setattr(host_memory, "cudart", FakeCudart())
    host_memory.HostMemory("pageable", 100).close()
    with pytest.raises(host_memory.NoHugePages, match="the kernel has none"):
        host_memory.HostMemory("registered_huge", 100)


def test_huge_pages_are_counted_in_the_mapping_of_the_address(tmp_path: Path) -> None:
    smaps = tmp_path / "smaps"
    smaps.write_text(
        "1000-3000 rw-p 00000000 00:00 0\nAnonHugePages:         0 kB\n"
        "3000-9000 rw-p 00000000 00:00 0\nRss: 8 kB\nAnonHugePages:      2048 kB\n"
    )
    assert host_memory.huge_bytes(0x3000, smaps) == 2048 * 1024
    assert host_memory.huge_bytes(0x2FFF, smaps) == 0
    assert host_memory.huge_bytes(0xFFFF, smaps) == 0


@pytest.mark.parametrize(("kind", "size"), [("swapped", 1), ("pageable", 0)])
def test_memory_of_no_kind_or_size_is_an_error(kind: str, size: int) -> None:
    with pytest.raises(FieldError):
        host_memory.HostMemory(kind, size)


# Charts, from results as a machine leaves them.

COPY = {"pageable": 5e9, "write_combined": 48e9, "registered_huge": 50e9, "registered": 49e9}
PRICE = {"allocate_time": 4e-3, "register_time": 2e-3, "write_time": 3e-3, "free_time": 1e-3}


def plausible(variant: Variant, case: Case, metric: str) -> float:
    """Seconds whose lines and break-even counts are known."""
    pieces = int(case.values.get("count", 1))
    per_piece = 2e-6 if method_of(variant.name) == "loop" else 1e-7
    return 8e-6 + pieces * per_piece + case.payload_bytes / COPY.get(memory_of(variant.name), 5e10)


def price(variant: Variant, metric: str) -> float | None:
    kind = memory_of(variant.name)
    if metric == "register_time" and not kind.startswith("registered"):
        return None
    return PRICE[metric] * (1 if kind == "pageable" else 3)


@pytest.fixture(scope="module")
def context(tmp_path_factory: pytest.TempPathFactory) -> Context:
    folder = tmp_path_factory.mktemp("charts")
    results, tables = folder / "results", folder / "tables"
    write_machine(results, "box", TRANSFERS, noise=0.001, seconds=plausible)
    for variant in TRANSFERS.variants:
        if not variant.name.endswith("_price"):
            continue
        known = [(m, value) for m in PRICE if (value := price(variant, m)) is not None]
        base = samples_of(TRANSFERS, variant, noise=0.0)
        samples = [
            replace(sample, metric=metric, value=value)
            for sample in base
            if sample.metric == "host_time"
            for metric, value in known
        ]
        add_run(
            results, "box", "transfers", variant.name, samples, provenance_of(TRANSFERS, variant)
        )
    studies = {"transfers": TRANSFERS}
    write_tables(results, studies, tables)
    return Context(load_inputs(tables, results, folder, studies), TRANSFERS)


@pytest.fixture(scope="module")
def own_charts(context: Context) -> Any:
    path = TRANSFERS.folder / "charts.py"
    spec = importlib.util.spec_from_file_location("charts_of_transfers", path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_chart_of_the_page_is_there(context: Context, tmp_path: Path) -> None:
    page = (ROOT / "docs" / "studies" / "transfers.md").read_text()
    named = set(re.findall(r"chart\('(\w+)'", page))
    made = study_charts(context)
    assert named - set(made) == {"timeline"}  # which needs a capture
    for name in named & set(made):
        table = write_chart(made[name], tmp_path, name, "charts")
        assert len(table) > 0
        specification = json.loads((tmp_path / f"{name}.json").read_text())
        assert vl_convert.vegalite_to_vega(
            specification | {"data": {"values": table.head(200).to_dict("records")}}
        )


def test_stale_results_draw_nothing_of_their_own(context: Context, own_charts: Any) -> None:
    stale = replace(context.inputs, summary=context.inputs.summary.assign(stale=1))
    assert set(own_charts.charts(Context(stale, TRANSFERS))) == {"steps"}


def test_the_map_names_the_fastest_of_what_was_measured(context: Context, own_charts: Any) -> None:
    table = own_charts.map_table(context)
    at = table[(table["size"] == 1024) & (table["count"] == 256) & (table["direction"] == "h2d")]
    by_memory = at.set_index("memory")
    assert by_memory.loc["pageable", "fastest"] == "pageable_packed"
    assert by_memory.loc["pinned", "fastest"] != "pinned_loop"
    seconds = {
        name: plausible(TRANSFERS.variant(name), move(1024, 256, "h2d"), "host_time")
        for name in ("pageable_packed", "pageable_loop")
    }
    expected = seconds["pageable_loop"] / seconds["pageable_packed"]
    assert float(by_memory.loc["pageable", "by"].rstrip("×")) == pytest.approx(expected, rel=0.02)


def test_lines_are_fitted_by_kind_direction_and_clock(context: Context, own_charts: Any) -> None:
    points = own_charts.line_points(context)
    fitted = points.drop_duplicates(["memory", "direction", "clock"])
    assert len(fitted[fitted["clock"].str.startswith("host")]) == 10
    for kind, bandwidth in COPY.items():
        own = fitted[fitted["memory"] == kind]
        assert own["gigabytes"].tolist() == pytest.approx([bandwidth / 1e9] * len(own), rel=0.02)


def test_break_even_is_the_extra_price_over_what_a_copy_saves(
    context: Context, own_charts: Any
) -> None:
    table = own_charts.break_even_table(context)
    row = table[
        (table["memory"] == "registered")
        & (table["size"] == 16777216)
        & (table["direction"] == "h2d")
    ].iloc[0]
    extra = 3 * (4e-3 + 2e-3 + 1e-3) - (4e-3 + 1e-3)
    saved = 16777216 / 5e9 - 16777216 / 49e9
    assert row["copies"] == pytest.approx(extra / saved, rel=0.02)


def test_steps_show_what_moves_the_headlines_piece(own_charts: Any) -> None:
    shown = own_charts.at_headline(TRANSFERS)
    assert {"pageable_loop", "pinned_loop", "registered_loop"} <= set(shown.variant_names)
    assert "pinned_2d" not in shown.variant_names
    assert all(case["count"] == 1 for variant in shown.variants for case in variant.cases)
