"""Recordings of PyTorch's memory from other people, and their replay."""

import pickle
from pathlib import Path
from typing import Any

import pytest

from allocator import __main__ as command
from allocator.lib.snapshot import Recording, read_snapshot
from analysis.api.study import HotpathError
from tests.kernels.phases.modules import MIB, built

Event = dict[str, Any]


def event(action: str, address: Any = 0, size: int = MIB, stream: Any = 0) -> Event:
    named = {} if action == "oom" else {"addr": address}
    return {"action": action, "size": size, "stream": stream, "frames": [], "time_us": 1, **named}


def segment(at: int, size: int, device: int = 0) -> Event:
    """A segment of a live block."""
    block = {"size": size, "state": "active_allocated"}
    return {"address": at, "device": device, "stream": 0, "blocks": [block]}


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("snapshots") / "snapshot.pickle"


def read(path: Path, traces: Any, segments: Any = ()) -> list[Recording]:
    path.write_bytes(pickle.dumps({"segments": [*segments], "device_traces": traces}))
    return read_snapshot(path)


OTHERS = [
    event("oom", size=2**60),
    *(event("snapshot"), event("segment_alloc", 2**30, 20 * MIB), event("segment_map", 2**30)),
    {"action": "of a newer version", "addr": None, "size": "5", "stream": []},
]
"""Events that are no requests."""


A, B = 2**30, 2**31
FREED = [event("free_requested", A), event("free_completed", A)]
RECORDED: dict[str, tuple[list[Event], list[Event], tuple[int, int, int, int]]] = {
    "a free counts once": ([event("alloc", A), *FREED, event("alloc", A)], [], (0, 2, 1, 1)),
    "where it is requested": (
        [event("alloc", A), FREED[0], event("alloc", B), FREED[1], event("alloc", A)],
        [],
        (0, 3, 2, 1),
    ),
    "or else completed": ([event("alloc", A), FREED[1], event("alloc", B)], [], (0, 2, 1, 1)),
    "or by the reuse of its memory": (
        [*(event("alloc", A + n * MIB) for n in range(8)), event("alloc", A + MIB // 2, 4 * MIB)],
        [],
        (0, 9, 8, 1),
    ),
    "live ones are freed": (
        [event("free", A), event("alloc", B)],
        [segment(B + A, MIB)],
        (2, 3, 2, 1),
    ),
    "others are left out": ([*OTHERS, event("alloc", A, stream=7)], [], (0, 1, 1, 2)),
}
"""Events and segments; live allocations at the start, allocations, peak in MiB, and streams."""


@pytest.mark.parametrize("name", RECORDED)
def test_a_recording_has_the_requests_of_its_program(path: Path, name: str) -> None:
    trace, segments, expected = RECORDED[name]
    (recording,) = read(path, [trace], segments)
    peak_mib, pattern = recording.peak_bytes // MIB, recording.pattern
    found = recording.live, recording.allocations, peak_mib, pattern.streams
    assert found == expected and len(pattern.tapes[0]) == 2 * recording.allocations
    assert [*recording.left_out] == [one["action"] for one in trace if one["action"][0] in "o"]


def test_devices_are_separate(path: Path) -> None:
    traces = [[event("alloc", A)], [], [event("alloc", A, 3 * MIB)]]
    segments = [
        *(segment(A, MIB), segment(B, 8 * MIB)),
        *(segment(A, 3 * MIB, device=2), segment(B, 16 * MIB, device=1)),
    ]
    shown = [(one.device, one.live, one.peak_bytes // MIB) for one in read(path, traces, segments)]
    assert shown == [(0, 1, 9), (2, 0, 3)]


class Hostile:
    def __reduce__(self) -> tuple[Any, ...]:
        return print, ("run",)


def traced(*events: Any) -> dict[str, Any]:
    return {"device_traces": [[*events]]}


REFUSED: dict[str, Any] = {
    "no traces": {"segments": []},
    "no events": {"device_traces": [[], []]},
    "a program": {"device_traces": Hostile()},
    "traces of text": {"device_traces": "x"},
    "a device of 5,000 digits": {"device_traces": [], "segments": [segment(1, 1, device=10**5000)]},
    "many devices": {"device_traces": [[]] * 1000},
    "only frees": traced(event("free_requested", 5)),
    "an event of text": traced("alloc"),
    "a size of 5,000 digits": traced(event("alloc", 1, 10**5000)),
    "a free twice": traced(event("alloc", 5), *2 * [event("free_requested", 5)]),
    "many streams": traced(*(event("alloc", n * MIB, 1, n) for n in range(1, 999))),
}


@pytest.mark.parametrize("snapshot", REFUSED.values(), ids=REFUSED)
def test_a_bad_snapshot_is_one_line(
    path: Path, snapshot: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    path.write_bytes(pickle.dumps(snapshot))
    with pytest.raises(HotpathError, match=rf"^{path}: .*expected [^\n]{{,600}}\Z"):
        read_snapshot(path)
    assert capsys.readouterr().out == ""


def test_the_command_names_peak_reserved_and_driver_calls(
    path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "has_gpu", lambda: False)
    monkeypatch.setattr("sys.argv", ["allocator", "replay", str(path)])
    trace = [*[event("alloc", 2**30), event("free", 2**30)] * 1000, event("oom", size=2**60)]
    read(path, [trace, [event("alloc", 2**30)]], [segment(2**31, 4 * MIB)])
    with monkeypatch.context() as patch, pytest.raises(HotpathError, match="not built; run: snake"):
        patch.setattr(command, "modules_of", lambda *_: path.parent)
        command.main()
    monkeypatch.setattr(command, "load_module", lambda *_: built("p5_dropin"))
    command.main()
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("device 0: 1,001 allocations; 1 of them live at the start; at most")
    assert lines[2].split(maxsplit=1) == ["torch_caching", "not replayed: needs a GPU"]
    name, peak, unit, reserved, _, calls = lines[3].split()
    assert (name, unit, calls) == ("p5_dropin", "MiB", "2")
    assert 5 <= float(peak) <= float(reserved) <= 30
    assert lines[4].startswith("device 1: 1 allocations")
    monkeypatch.setattr(command, "HOST_BYTES", 2**20)
    assert [*command.report(path)][3].startswith("p5_dropin      not replayed: ")
