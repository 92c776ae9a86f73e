"""The descriptors of unpack: drawn, checked and bound; and the parts of a call."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.base.errors import FieldError
from analysis.measure.memory import DeviceArray
from analysis.study import Case
from analysis.toolchain.modules import load_python
from tests.compiled import gpu_module
from tests.conformance.binding import case_of
from tests.conformance.emulated import bound
from tests.kernels.cuda import Cuda
from tests.repository import STUDIES

UNPACK = STUDIES["unpack"]
WORKLOADS = load_python(UNPACK, "workload")
LONGEST, GUARD, ROOM = UNPACK.constants["longest_fragment"], WORKLOADS.GUARD, 8
Descriptors = list[tuple[int, int, int]]


def unpack_case(**values: int) -> Case:
    return Case({"chunks": 3, "kib": 1, "fragment": 96, "src": 0, "dst": 0, **values}, 0, "default")


def made(*chunks: Descriptors) -> Any:
    """A plan of chunks of (src_off, len, dst_off)."""
    return WORKLOADS.plan([np.array(chunk, WORKLOADS.DESCRIPTOR) for chunk in chunks], ROOM)


@given(
    chunks=st.integers(1, 4),
    kib=st.integers(1, 3),
    fragment=st.integers(1, 700),
    src=st.integers(0, 15),
    dst=st.integers(0, 15),
    arrival=st.sampled_from([WORKLOADS.AT_RANDOM, WORKLOADS.IN_ORDER]),
)
def test_a_case_is_cut_into_fragments_that_fill_its_destination(
    chunks: int, kib: int, fragment: int, src: int, dst: int, arrival: int
) -> None:
    case = unpack_case(chunks=chunks, kib=kib, fragment=fragment, src=src, dst=dst)
    drawn = WORKLOADS.draw_chunks(case, np.random.default_rng(0), arrival)
    plan = WORKLOADS.plan(drawn, ROOM)
    WORKLOADS.require_valid(plan, LONGEST)
    every = plan.descriptors
    assert (plan.blocks["count"] <= ROOM).all() and plan.bounce_bytes % 16 == 0
    assert int(every["len"].sum()) == int(plan.blocks["bytes"].sum()) == chunks * kib * 1024
    # Contiguous, in the order of the destination.
    ends = every["dst_off"] + every["len"]
    assert every["dst_off"].tolist() == [GUARD + dst, *ends[:-1].tolist()]
    assert plan.dst_bytes == int(ends[-1]) + GUARD
    # Every source byte at most once, each at the requested alignment.
    starts = np.sort(every["src_off"])
    assert (np.diff(starts) >= fragment).all() and (every["src_off"] % 16 == src).all()
    if arrival == WORKLOADS.IN_ORDER or len(starts) > 20 * chunks:
        assert (starts == every["src_off"]).all() == (arrival == WORKLOADS.IN_ORDER)


@pytest.mark.parametrize(
    ("block", "index", "field", "value", "message"),
    [
        (1, 1, "src_off", 62, "within 64, got 66"),
        (0, 1, "src_off", 2**32 - 1, "within 64, got 4294967303"),
        (1, 0, "dst_off", 570, "within 576, got 586"),
        (1, 0, "dst_off", 2**64 - 4, "within 576, got 1844674407370955"),
        (0, 0, "len", 0, "1 to 2147483648, got 0"),
        (0, 1, "len", 2**31 + 1, "1 to 2147483648, got 2147483649"),
        (1, 0, "dst_off", 279, r"bytes that blocks\[0\].descriptors\[1\] .*, got 279"),
        (0, None, "count", 0, "1 to 8, got 0"),
        (1, None, "count", 9, "1 to 8, got 9"),
        (1, None, "bytes", 25, "the sum of all lengths, 20, got 25"),
    ],
)
def test_invalid_descriptors_are_rejected_with_their_index(
    block: int, index: int | None, field: str, value: int, message: str
) -> None:
    plan = made([(0, 16, 256), (16, 8, 272)], [(32, 16, 288), (48, 4, 316)])
    target = plan.blocks[block] if index is None else plan.blocks[block]["descriptors"][index]
    target[field] = value
    with pytest.raises(FieldError, match=message) as caught:
        WORKLOADS.require_valid(plan, LONGEST)
    place = "" if index is None else f".descriptors[{index}]"
    assert caught.value.field == f"blocks[{block}]{place}.{field}"


@given(
    lengths=st.lists(st.tuples(st.integers(0, 5), st.integers(1, 40)), min_size=1, max_size=30),
    data=st.data(),
)
def test_an_overlap_is_rejected_at_the_first_descriptor_that_has_one(
    lengths: list[tuple[int, int]], data: st.DataObject
) -> None:
    ends = GUARD + np.cumsum([gap + length for gap, length in lengths])
    placed = [
        (0, length, int(end) - length) for (_, length), end in zip(lengths, ends, strict=True)
    ]
    flat = list(data.draw(st.permutations(placed)))
    moved = data.draw(st.integers(0, len(flat) - 1))
    flat[moved] = (*flat[moved][:2], data.draw(st.integers(GUARD, int(ends[-1]))))
    written: set[int] = set()
    for index, (_, length, start) in enumerate(flat):
        place = {*range(start, start + length)}
        if written & place:
            with pytest.raises(FieldError) as caught:
                WORKLOADS.require_valid(made(flat), LONGEST)
            block, position = divmod(index, ROOM)
            assert caught.value.field == f"blocks[{block}].descriptors[{position}].dst_off"
            return
        written |= place
    WORKLOADS.require_valid(made(flat), LONGEST)


def test_parts_are_medians_of_calls_after_the_first() -> None:
    calls = iter([{"a": 9.0e-5, "b": 1e-5}, *({"a": i * 1e-5, "b": 1e-6} for i in range(1, 21))])
    found = WORKLOADS.part_samples(lambda: next(calls))
    assert found == {"a": [pytest.approx(10.5e-5)], "b": [1e-6]}
    assert WORKLOADS.part_samples(lambda: {"wait_time": 0.4}) == {"wait_time": [0.4]}
    header = (UNPACK.folder / "operator.h").read_text()
    named = header[header.index("kPartNames") :].partition(";")[0].split('"')
    metrics = {name for name, metric in UNPACK.metrics.items() if metric.part_of == "host_time"}
    assert {word for word in named if "_time" in word} == metrics


def test_ceilings_get_contiguous_bytes(fake: Cuda) -> None:
    for name in ("one_copy", "s4_batched", "coalesced_in_order"):
        arrival = UNPACK.variant(name).constants["arrival"]
        values = {"chunks": 1, "kib": 1, "fragment": 64, "src": 0}
        operation = bound("unpack", name, values, arrival=arrival)
        sources = operation._bound.blocks["descriptors"]["src_off"].ravel()
        assert (np.diff(sources.astype(int)) == 64).all() == (name != "s4_batched")


@pytest.mark.gpu
@pytest.mark.parametrize(
    ("index", "field", "value", "message"),
    [
        (5, "len", 0, "descriptor 5: no bytes"),
        (77, "src_off", 2**32 - 1, "descriptor 77: beyond the bounce buffer"),
        (3, "dst_off", 2**64 - 8, "descriptor 3: beyond the destination"),
        (127, "dst_off", WORKLOADS.GUARD + 1, "descriptor 127: overlaps another"),
        (0, "bytes", 1, "bytes: expected the sum of all lengths, 524288, got 262145"),
    ],
)
def test_the_checked_mode_finds_faults_on_the_device(
    stream: int, index: int, field: str, value: int, message: str
) -> None:
    case = case_of(UNPACK.variant("checked"), {"chunks": 2, "kib": 256}, {})
    drawn = WORKLOADS.draw_chunks(case, np.random.default_rng(0))
    plan = WORKLOADS.plan(drawn, UNPACK.constants["block_descriptors"])
    bounce = DeviceArray((plan.bounce_bytes,), np.uint8, "bounce")
    dst = DeviceArray((plan.dst_bytes,), np.uint8, "dst")
    block, position = divmod(index, 64)
    target = plan.blocks[block]
    (target if field == "bytes" else target["descriptors"][position])[field] = value
    blocks, ends = plan.blocks.view(np.uint8).reshape(-1), (bounce.nbytes, dst.pointer, dst.nbytes)
    bad = gpu_module(UNPACK, "checked").bind(blocks, plan.blocks_of_chunks, bounce.pointer, *ends)
    with pytest.raises(RuntimeError, match=message):
        bad.launch(stream)
