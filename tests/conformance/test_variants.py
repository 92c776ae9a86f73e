"""Every variant that can be launched without a GPU: bound to host memory, launched, checked."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from analysis.base.errors import FieldError
from analysis.measure.cell import Operation
from analysis.study import Variant
from kernels.common import shared_pool
from kernels.common.arrays import Bytes
from tests.compiled import use_built_library
from tests.conformance.binding import outcome
from tests.conformance.emulated import EMULATED, VARIANTS, bound, directions, draw_few
from tests.kernels.cuda import Cuda
from tests.kernels.cuda import fake as fake
from tests.kernels.peers import fake_torch
from tests.kernels.stubbed import stubbed
from tests.repository import STUDIES


@pytest.fixture
def host(fake: Cuda, monkeypatch: pytest.MonkeyPatch) -> Cuda:
    """A host with few cores, without a GPU, and with a stand-in for PyTorch."""
    fake_torch.install(monkeypatch)
    draw_few(monkeypatch)
    monkeypatch.setattr(shared_pool, "cores", lambda: [0, 1, 0])
    return fake


@pytest.mark.parametrize(("study", "variant"), VARIANTS)
def test_a_launch_is_right_and_none_is_not(host: Cuda, study: str, variant: Variant) -> None:
    workload = None  # serves all cases, which come again
    for small in 2 * [*range(len(EMULATED[study].cases))]:
        for values in directions(variant):
            operation = bound(study, variant.name, values, small=small, workload=workload)
            workload = operation.workload
            assert [outcome(operation) for _ in range(2)] == [None, None]
            assert {*operation.own_samples(0, 1)} <= {*STUDIES[study].metrics}
            operation.poison()
            assert operation.check() is not None


def one_bit(memory: Bytes, before: Bytes, written: np.ndarray) -> None:
    memory[written[len(written) // 2]] ^= 1


def last_byte_missing(memory: Bytes, before: Bytes, written: np.ndarray) -> None:
    memory[written[-1]] = before[written[-1]]


def byte_behind(memory: Bytes, before: Bytes, written: np.ndarray) -> None:
    memory[min(int(written[-1]) + 1, len(memory) - 1)] ^= 0x5A


def byte_between(memory: Bytes, before: Bytes, written: np.ndarray) -> None:
    gaps = np.flatnonzero(np.diff(written) > 1)
    memory[written[gaps[-1]] + 1 if gaps.size else written[0]] ^= 0x5A


def spoiled(cuda: Cuda, operation: Operation, spoil: Callable[..., None]) -> list[str | None]:
    """The results of checks after a launch and a fault in one of the memories that it has written.

    A check may also stop at a number that is no place: that ends its round.
    """
    operation.poison()
    before = {at: memory.copy() for at, memory in cuda.held.items()}
    operation.launch(0)
    written = {at: np.flatnonzero(cuda.held[at] != old) for at, old in before.items()}
    found: list[str | None] = []
    for at in (at for at, places in written.items() if places.size):
        right = cuda.held[at].copy()
        spoil(cuda.held[at], before[at], written[at])
        try:
            found.append(operation.check())
        except IndexError as error:
            found.append(str(error))
        cuda.held[at][:] = right
    return found


@pytest.mark.parametrize(("study", "variant"), VARIANTS)
def test_a_spoiled_output_fails(host: Cuda, study: str, variant: Variant) -> None:
    # Only in memory of CUDA's, the spoiled output is seen.
    is_held = variant.name.startswith(("pinned", "write_combined"))
    values = directions(variant)[0 if is_held else -1]
    for spoil in (one_bit, last_byte_missing, byte_behind, byte_between):
        found = spoiled(host, bound(study, variant.name, values), spoil)
        assert found and None not in found, spoil.__name__


ON_HOST = {
    "duplex": ("in_turn", "at_once"),
    "pool_gather": ("packed_by_cpu", "ceiling_copy_engine", "packed_past_caches", "packed_by_2"),
    "transfers": tuple(
        f"pinned_{name}" for name in ("loop", "packed", "batch", "list_loop", "list_packed", "2d")
    ),
}
"""Variants whose host code is compiled."""
LONG = {*ON_HOST["pool_gather"], "pinned_2d"}
"""Bindings of pool_gather would be compiled for this test alone."""
VALUES: dict[str, list[dict[str, Any]]] = {
    "pinned_loop": [{"direction": "both", "count": 1}, {}],
    "pinned_list_packed": [{"threads": 1}, {"threads": 5}],
}


@pytest.mark.usefixtures("host")
@pytest.mark.parametrize(
    ("study", "name"),
    [
        pytest.param(study, name, marks=[pytest.mark.long] if name in LONG else [])
        for study, names in ON_HOST.items()
        for name in names
    ],
)
def test_host_code_moves_every_byte(study: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    use_built_library(monkeypatch)
    # All bindings of pieces are compiled from one header; those of transfers have all of it.
    bindings = STUDIES["transfers" if study == "duplex" else study]
    module = stubbed(STUDIES[study], name, bindings=bindings)
    variant = STUDIES[study].variant(name)
    for small in range(len(EMULATED[study].cases)):
        for value in (way | one for way in directions(variant) for one in VALUES.get(name, [{}])):
            operation = bound(study, name, value, module, small=small)
            for _ in range(3):
                assert outcome(operation) is None
                assert operation.check() is None
                if variant.host_work and operation.settle:
                    operation.settle()
            for part in getattr(operation, "targets", [operation]):
                part.poison()
                assert operation.check() is not None
                operation.launch(0)


ROWS = {"row_bytes": 512, "offset_bytes": 0, "constants": {"total_bytes": 9 * 512}}
REFUSED: dict[str, list[tuple[dict[str, Any], str]]] = {
    "h2d_gather v3_loads_first": [
        ({"bs": 0}, "at least one row, got 0"),
        ({"draw": "sorted"}, "draw: expected permutation or with_replacement, got 'sorted'"),
        ({"bs": 5, "topk": 13, "draw": "permutation"}, "^total_cpu_slots: expected at least 65"),
        ({"constants": {"token_bytes": 100}}, r"^constants\.token_bytes: .* 16, got 100"),
    ],
    "link_calibration sm_rows": [
        ({"row_bytes": 100}, "row_bytes: expected a multiple of 16, got 100"),
        ({**ROWS, "stride_bytes": 256}, "rows in slots of 256 B, got 9"),
        ({**ROWS, "stride_bytes": 8192}, "at most 8 rows in slots of 8192 B, got 9"),
    ],
    "peers pulled": [
        ({"rows": 1599}, "rows: expected"),
        *(({"row_bytes": size}, "row_bytes: expected a multiple") for size in (0, 24, 4112)),
    ],
    "pool_gather loads_first": [
        ({"rows": 1599, "layout": "distinct"}, "1599"),
        *(({"layout": layout}, "case") for layout in ("contiguous", "pages_2000")),
        *(({"layout": layout}, "layout: expected") for layout in ("pages_0", "sorted")),
        *(({"pool_mib": mib}, f"pool_mib: expected .*, got {mib}") for mib in (0, 5)),
        ({"constants": {"token_bytes": 650}}, r"^constants\.token_bytes: expected"),
        ({"constants": {"slot_bytes": 672}}, r"^constants\.slot_bytes: expected"),
    ],
    "transfers pinned_list_loop": [
        *(({name: 0}, name) for name in ("size", "count")),
        ({"host": "round"}, "layout"),
        ({"direction": "up"}, "^direction: expected .*round_trip"),
    ],
    "translation independent_lines": [
        *(({"count": count}, r"count: expected 1 to 2\^31") for count in (0, 2**31)),
        ({"count": 2**24}, r"fewer than 2\^32 lines"),
        ({"order": "sideways"}, "order: expected one of .*'sideways'"),
    ],
    "translation rows": [
        ({"row_bytes": 656, "rows": 1600}, "rows: expected at most 1598, got 1600"),
        ({"row_bytes": 4096, "rows": 513}, "at most 2097152 B"),
        ({"row_bytes": 20}, "a multiple of 16 B in each read, got 20"),
    ],
    "unpack s4_batched": [
        *(({name: 0}, f"{name}: expected at least 1") for name in ("chunks", "fragment")),
        ({"chunks": 5, "kib": 2**20, "fragment": 2**20}, "sources within 4 GiB"),
        ({"constants": {"arrival": 3}}, r"^constants\.arrival: expected 1 or 2, got 3"),
    ],
}
"""Values of a case and, under "constants", of the study of a variant; and the error."""


@pytest.mark.usefixtures("host")
@pytest.mark.parametrize("of", REFUSED)
def test_what_makes_no_sense_is_one_error(of: str) -> None:
    study, variant = of.split()
    for values, message in REFUSED[of]:
        case = {key: value for key, value in values.items() if key != "constants"}
        with pytest.raises(FieldError, match=message):
            bound(study, variant, case, **values.get("constants", {}))
