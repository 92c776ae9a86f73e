"""The unpack study's workload: bindings, the check of the output, and samples besides times."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from analysis.base.errors import FieldError
from tests.kernels import cuda
from tests.kernels.cuda import install
from tests.kernels.unpack.fake import ROOM, UNPACK, WORKLOADS, HostModule
from tests.kernels.unpack.test_planner import unpack_case


def test_parts_are_medians_of_calls_after_the_first() -> None:
    calls = iter([{"a": 9.0e-5, "b": 1e-5}, *({"a": i * 1e-5, "b": 1e-6} for i in range(1, 21))])
    found = WORKLOADS.part_samples(lambda: next(calls))
    assert found == {"a": [pytest.approx(10.5e-5)], "b": [1e-6]}
    assert WORKLOADS.part_samples(lambda: {"wait_time": 0.4}) == {"wait_time": [0.4]}


def test_every_part_that_paths_time_is_a_metric() -> None:
    header = (UNPACK.folder / "operator.h").read_text()
    start = header.index("kPartNames")
    named = {
        word for word in header[start : header.index(";", start)].split('"') if "_time" in word
    }
    metrics = {name for name, metric in UNPACK.metrics.items() if metric.part_of == "host_time"}
    assert named == metrics


@pytest.fixture
def workload(monkeypatch: pytest.MonkeyPatch) -> Any:
    install(monkeypatch)
    constants = dict(UNPACK.constants) | {"block_descriptors": ROOM}
    return WORKLOADS.Workload(constants, np.random.default_rng(1))


def outcome(workload: Any, name: str) -> str | None:
    return cuda.outcome(workload.bind(UNPACK.variant(name), HostModule()))


def test_every_case_of_one_process_is_checked_against_the_bytes_of_that_case(workload: Any) -> None:
    # Larger, smaller and larger again: buffers are kept where they are large enough.
    for size, fragment, src in ((2, 96, 0), (1, 96, 1), (3, 77, 5), (1, 1024, 0)):
        workload.prepare(unpack_case(kib=size, fragment=fragment, src=src))
        for name in ("s4_batched", "one_copy", "copy_per_fragment", "s4_batched"):
            assert outcome(workload, name) is None


def sources(workload: Any, name: str, room: int = ROOM) -> np.ndarray:
    """Where the fragments of the variant lie, in their order."""
    module = HostModule(room)
    workload.bind(UNPACK.variant(name), module)
    (blocks,) = module.plans
    found = [block["descriptors"]["src_off"][: block["count"]] for block in blocks]
    return np.concatenate(found).astype(int)


def test_ceilings_get_contiguous_bytes_and_others_scattered_ones(workload: Any) -> None:
    workload.prepare(unpack_case(chunks=1, fragment=64))
    assert (np.diff(sources(workload, "one_copy")) == 64).all()
    assert not (np.diff(sources(workload, "s4_batched")) == 64).all()


def test_fragments_arrive_as_the_constants_say(workload: Any) -> None:
    variant, rng = UNPACK.variant("coalesced_in_order"), np.random.default_rng(0)
    ordered = WORKLOADS.Workload(variant.constants, rng)
    ordered.prepare(unpack_case(chunks=2, fragment=64))
    assert (np.diff(sources(ordered, variant.name, room=2048)) == 64).all()
    with pytest.raises(FieldError, match=r"constants\.arrival: expected 1 or 2, got 3"):
        WORKLOADS.Workload({**UNPACK.constants, "arrival": 3}, rng).prepare(unpack_case())


def test_an_operation_reports_its_waits_and_its_preparation(workload: Any) -> None:
    workload.prepare(unpack_case())
    module = HostModule()
    operation = workload.bind(UNPACK.variant("persistent_queue"), module)
    assert operation.waits and operation.reset is not None
    operation.reset(0)
    assert operation.own_samples(0, 2) == {"launch_time": [1.0], "wait_time": [2.0]}
    step = workload.bind(UNPACK.variant("s0_everything_per_chunk"), module)
    assert step.own_samples(0, 2)["wrong_bytes"] == [0]
    assert workload.bind(UNPACK.variant("copy_per_fragment"), module).own_samples(0, 2) == {}
