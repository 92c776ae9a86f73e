"""Recordings of PyTorch's memory from other people, and their replay."""

from __future__ import annotations

import pickle
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from allocator import __main__ as command
from allocator.lib.snapshot import Recording, SnapshotError, read_snapshot
from analysis.api.study import HotpathError
from tests.compiled import gpu_module
from tests.kernels.phases.modules import STUDY, built

MIB = 2**20
Event = dict[str, Any]


def event(action: str, address: int = 0, size: int = MIB, stream: int = 0) -> Event:
    named = {} if action == "oom" else {"addr": address}
    return {"action": action, "size": size, "stream": stream, "frames": [], "time_us": 1, **named}


def cycle(address: int, *frees: str, size: int = MIB) -> list[Event]:
    return [event("alloc", address, size), *(event(free, address, size) for free in frees)]


def segment(at: int, *sizes: int, device: int = 0, **more: Any) -> dict[str, Any]:
    """A segment whose blocks are all live."""
    blocks = [{"size": size, "state": "active_allocated", **more} for size in sizes]
    return {"address": at, "device": device, "stream": 0, "blocks": blocks}


def saved(folder: Path, traces: Any, segments: Any = (), **more: Any) -> Path:
    path = folder / "snapshot.pickle"
    path.write_bytes(pickle.dumps({"segments": [*segments], "device_traces": traces, **more}))
    return path


def read(folder: Path, trace: Sequence[Event], segments: Any = ()) -> Recording:
    (recording,) = read_snapshot(saved(folder, [[*trace]], segments))
    return recording


@pytest.mark.parametrize(
    ("frees", "implied"),
    [
        (("free_requested", "free_completed"), 0),
        (("free_requested",), 0),
        (("free_completed",), 0),
        (("free",), 0),
        ((), 999),
    ],
)
def test_an_address_that_is_reused_holds_one_allocation(
    tmp_path: Path, frees: tuple[str, ...], implied: int
) -> None:
    recording = read(tmp_path, cycle(2**30, *frees) * 1000)
    assert recording.peak_bytes == MIB
    assert (recording.allocations, recording.implied) == (1000, implied)
    (tape,) = recording.pattern().tapes
    assert len(tape) == 2000 and tape[:, 1].max() == 0


def test_memory_that_a_larger_allocation_covers_was_freed(tmp_path: Path) -> None:
    small = [event("alloc", 2**30 + n * MIB) for n in range(8)]
    recording = read(tmp_path, [*small, event("alloc", 2**30 + MIB // 2, 4 * MIB)])
    assert recording.implied == 5
    assert recording.peak_bytes == 8 * MIB


def test_a_free_counts_where_it_was_requested(tmp_path: Path) -> None:
    a, b = cycle(2**30, "free_requested", "free_completed"), cycle(2**31, "free_requested")
    recording = read(tmp_path, [*a[:2], *b, a[2]])
    assert recording.peak_bytes == MIB


@pytest.mark.parametrize(
    "other",
    [
        event("oom", size=2**60),
        {"action": "oom", "size": 3, "device_free": 5, "stream": 0},
        event("snapshot"),
        event("segment_alloc", 2**30, 20 * MIB),
        event("segment_map", 2**30),
        {"action": "user_defined"},
        {"action": "of a newer version", "addr": None, "size": "5", "stream": []},
    ],
    ids=lambda one: one["action"],
)
def test_other_events_are_left_out(tmp_path: Path, other: Event) -> None:
    recording = read(tmp_path, [other, *cycle(2**30, "free_requested"), other])
    assert (recording.allocations, recording.peak_bytes) == (1, MIB)
    of_allocator = other["action"].startswith("s")
    assert dict(recording.left_out) == ({} if of_allocator else {other["action"]: 2})


def test_devices_are_separate(tmp_path: Path) -> None:
    traces = [cycle(2**30), [], cycle(2**30, size=3 * MIB)]
    segments = [
        segment(2**30, MIB),
        segment(2**31, 8 * MIB, device=0),
        segment(2**30, 3 * MIB, device=2),
        segment(2**31, 16 * MIB, device=1),
    ]
    found = read_snapshot(saved(tmp_path, traces, segments))
    assert [(one.device, one.live, one.peak_bytes // MIB) for one in found] == [
        (0, 1, 9),
        (2, 0, 3),
    ]


@pytest.mark.parametrize(
    ("more", "size"),
    [
        ({"requested_size": 700_000, "address": 2**31}, 700_000),
        ({"requested_size": 700_000}, 700_000),
        ({"history": [{"real_size": 600_000, "addr": 5}]}, 600_000),
        ({}, MIB),
    ],
)
def test_what_was_live_before_is_live_at_the_start(
    tmp_path: Path, more: dict[str, Any], size: int
) -> None:
    before = event("free_requested", 2**29, 5 * MIB)
    trace = [*cycle(2**30, "free_requested"), before]
    recording = read(tmp_path, trace, [segment(2**31, MIB, **more)])
    assert recording.live == 2
    assert recording.peak_bytes == MIB + 5 * MIB + size


def test_blocks_without_addresses_follow_each_other(tmp_path: Path) -> None:
    trace = cycle(2**31 + 3 * MIB)
    recording = read(tmp_path, trace, [segment(2**31, MIB, 2 * MIB, MIB)])
    assert (recording.live, recording.allocations) == (2, 3)


def test_streams_are_numbered(tmp_path: Path) -> None:
    trace = [event("alloc", 2**30 * (1 + n), stream=n * 2**40) for n in range(3)]
    pattern = read(tmp_path, trace).pattern()
    assert pattern.streams == 3
    assert pattern.tapes[0][:3, 3].tolist() == [0, 1, 2]


class Hostile:
    def __reduce__(self) -> tuple[Any, ...]:
        return print, ("run",)


REFUSED: dict[str, Any] = {
    "a list": [],
    "no traces": {"segments": []},
    "no events": {"device_traces": [[], []]},
    "only frees": {"device_traces": [[event("free_requested", 5)]]},
    "a program": {"device_traces": Hostile()},
    "a class": {"device_traces": SnapshotError},
    "traces of text": {"device_traces": "x"},
    "an event of text": {"device_traces": [["alloc"]]},
    "no address": {"device_traces": [[event("alloc") | {"addr": None}]]},
    "an address below 0": {"device_traces": [[event("alloc", -1)]]},
    "a size beyond any": {"device_traces": [[event("alloc", 1, 2**60)]]},
    "a size of 5,000 digits": {"device_traces": [[event("alloc", 1, 10**5000)]]},
    "a device of 5,000 digits": {"device_traces": [], "segments": [segment(1, 1, device=10**5000)]},
    "a stream of text": {"device_traces": [[event("alloc") | {"stream": "0"}]]},
    "a block of text": {"device_traces": [], "segments": [{"blocks": ["x"]}]},
    "a free twice": {"device_traces": [[*cycle(5, "free_requested", "free_requested")]]},
    "many devices": {"device_traces": [[]] * 1000},
    "many streams": {"device_traces": [[event("alloc", n * MIB, 1, n) for n in range(1, 999)]]},
}


@pytest.mark.parametrize("snapshot", REFUSED.values(), ids=REFUSED)
def test_a_bad_snapshot_is_refused_in_one_line(
    tmp_path: Path, snapshot: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "snapshot.pickle"
    path.write_bytes(pickle.dumps(snapshot))
    with pytest.raises(SnapshotError) as error:
        [recording.pattern() for recording in read_snapshot(path)]
    shown = str(error.value)
    assert shown.count("\n") == 0 and len(shown) < 700 and shown.startswith(f"{path}: ")
    assert "expected" in shown and capsys.readouterr().out == ""


@pytest.mark.parametrize("content", [b"", b"x", b"\x80\x05", pickle.dumps({})[:-1], b"\x1f\x8b"])
def test_a_file_that_is_no_pickle_is_refused_in_one_line(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "snapshot.pickle"
    path.write_bytes(content)
    with pytest.raises(SnapshotError, match=r"expected a file of torch.cuda.memory._dump_snapshot"):
        read_snapshot(path)
    for wrong in (tmp_path, tmp_path / "missing"):
        with pytest.raises(SnapshotError, match="got no plain file"):
            read_snapshot(wrong)


def test_random_requests_have_the_peak_of_their_live_bytes(tmp_path: Path) -> None:
    draw = random.Random(1)
    live: dict[int, int] = {}
    peak = 0
    trace = []
    for _ in range(3000):
        if live and draw.random() < 0.5:
            address = draw.choice([*live])
            trace.append(event(draw.choice(["free_requested", "free_completed"]), address))
            del live[address]
        else:
            address, size = draw.randrange(1, 500) * 2**40, draw.randrange(1, MIB)
            if address in live:
                continue
            live[address] = size
            trace.append(event("alloc", address, size))
        peak = max(peak, sum(live.values()))
    assert read(tmp_path, trace).peak_bytes == peak


@pytest.fixture
def on_host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "has_gpu", lambda: False)
    monkeypatch.setattr(command, "load_module", lambda *_: built("p5_dropin"))


@pytest.mark.usefixtures("on_host")
def test_the_command_names_peak_reserved_and_driver_calls(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    trace = [*cycle(2**30, "free_completed") * 1000, event("oom", size=2**60)]
    path = saved(tmp_path, [trace, cycle(2**30)], [segment(2**31, 4 * MIB)])
    monkeypatch.setattr("sys.argv", ["allocator", "replay", str(path)])
    command.main()
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(
        "device 0: 1,001 allocations; 1 of them live at the start; at most 5.0"
    )
    assert lines[0].endswith("on the CPU's stand-in for a GPU; left out: 1 oom")
    assert lines[2].split(maxsplit=1) == ["torch_caching", "not replayed: needs a GPU"]
    name, peak, unit, reserved, _, calls = lines[3].split()
    assert (name, unit, calls) == ("p5_dropin", "MiB", "2")
    assert 5 <= float(peak) <= float(reserved) <= 30
    assert lines[4].startswith("device 1: 1 allocations")


@pytest.mark.usefixtures("on_host")
def test_an_allocator_without_room_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "HOST_BYTES", 2**20)
    lines = list(command.report(saved(tmp_path, [cycle(2**30, size=64 * MIB)])))
    assert lines[3].startswith("p5_dropin      not replayed: ")


def test_modules_that_are_not_built_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "has_gpu", lambda: False)
    monkeypatch.setattr(command, "modules_of", lambda study, name: tmp_path)
    with pytest.raises(HotpathError, match=r"not built; run: snakemake .* build"):
        list(command.report(saved(tmp_path, [cycle(2**30)])))


@pytest.mark.gpu
def test_on_a_gpu_both_allocators_replay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    trace = [*cycle(2**30, "free_completed") * 100, event("alloc", 2**31, MIB, stream=77)]
    modules = {name: gpu_module(STUDY, name) for name in (command.TORCH, command.OURS)}
    monkeypatch.setattr(command, "load_module", lambda _, __, variant: modules[variant.name])
    lines = list(command.report(saved(tmp_path, [trace])))
    for line, name in zip(lines[2:4], modules, strict=True):
        assert line.startswith(name) and "not replayed" not in line
