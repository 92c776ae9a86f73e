"""The unpack study's planner: its descriptors, those it rejects, and the expected destination."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.base.errors import FieldError
from analysis.study import Case
from tests.kernels.unpack.fake import ROOM, UNPACK, WORKLOADS

LONGEST = UNPACK.constants["longest_fragment"]
GUARD = WORKLOADS.GUARD


def unpack_case(**changes: int | str) -> Case:
    values: dict[str, int | str] = {"chunks": 3, "kib": 1, "fragment": 96, "src": 0, "dst": 0}
    return Case(values | changes, 0, "default")


def made(*chunks: list[tuple[int, int, int]], room: int = ROOM) -> Any:
    """A plan of chunks of (src_off, len, dst_off)."""
    return WORKLOADS.plan([np.array(chunk, WORKLOADS.DESCRIPTOR) for chunk in chunks], room)


@st.composite
def random_chunks(draw: st.DrawFn) -> list[list[tuple[int, int, int]]]:
    """Descriptors with random sources and disjoint destinations, in any order."""
    lengths = draw(st.lists(st.integers(1, 40), min_size=1, max_size=30))
    at = GUARD
    placed = []
    for length in lengths:
        at += draw(st.integers(0, 5))
        placed.append((draw(st.integers(0, 200)), length, at))
        at += length
    shuffled = draw(st.permutations(placed))
    cut = draw(st.integers(0, len(shuffled) - 1))
    return [part for part in (shuffled[:cut], shuffled[cut:]) if part]


@given(
    chunks=st.integers(1, 4),
    kib=st.integers(1, 3),
    fragment=st.integers(1, 700),
    src=st.integers(0, 15),
    dst=st.integers(0, 15),
    arrival=st.sampled_from([WORKLOADS.AT_RANDOM, WORKLOADS.IN_ORDER]),
    seed=st.integers(0, 2**32),
)
def test_a_case_is_cut_into_fragments_that_fill_its_destination(
    chunks: int, kib: int, fragment: int, src: int, dst: int, arrival: int, seed: int
) -> None:
    case = unpack_case(chunks=chunks, kib=kib, fragment=fragment, src=src, dst=dst)
    drawn = WORKLOADS.draw_chunks(case, np.random.default_rng(seed), arrival)
    plan = WORKLOADS.plan(drawn, ROOM)
    WORKLOADS.require_valid(plan, LONGEST)
    every = plan.descriptors
    assert (plan.blocks["count"] <= ROOM).all() and plan.bounce_bytes % 16 == 0
    assert int(every["len"].sum()) == int(plan.blocks["bytes"].sum()) == chunks * kib * 1024
    # Contiguous, in the order of the destination.
    assert every["dst_off"][0] == GUARD + dst
    ends = every["dst_off"] + every["len"]
    assert (every["dst_off"][1:] == ends[:-1]).all()
    assert plan.dst_bytes == int(ends[-1]) + GUARD
    # Every source byte at most once, each at the requested alignment.
    starts = np.sort(every["src_off"])
    assert (np.diff(starts) >= fragment).all() and (every["src_off"] % 16 == src).all()
    if arrival == WORKLOADS.IN_ORDER:
        assert (starts == every["src_off"]).all()
    elif len(starts) > 20 * chunks:
        assert (starts != every["src_off"]).any()


@pytest.mark.parametrize(
    ("changes", "field", "expected"),
    [
        ({"chunks": 0}, "chunks", "at least 1"),
        ({"fragment": 0}, "fragment", "at least 1"),
        ({"chunks": 5, "kib": 2**20}, "case", "sources within 4 GiB"),
    ],
)
def test_an_impossible_case_is_an_error(changes: dict[str, Any], field: str, expected: str) -> None:
    case = unpack_case(**({"fragment": 2**20} | changes))
    with pytest.raises(FieldError, match=expected) as caught:
        WORKLOADS.draw_chunks(case, np.random.default_rng(0))
    assert field in caught.value.field


GOOD = ([(0, 16, 256), (16, 8, 272)], [(32, 16, 288), (48, 4, 300 + 16)])


@pytest.mark.parametrize(
    ("block", "index", "field", "value", "expected", "got"),
    [
        (1, 1, "src_off", 62, "within 64", "66"),
        (0, 1, "src_off", 2**32 - 1, "within", "4294967303"),
        (1, 0, "dst_off", 570, "within 576", "586"),
        (1, 0, "dst_off", 2**64 - 4, "within", "1844674407370955"),
        (0, 0, "len", 0, "1 to 2147483648", "0"),
        (0, 1, "len", 2**31 + 1, "1 to", "2147483649"),
        (1, 0, "dst_off", 279, "blocks[0].descriptors[1]", "279"),
        (1, 1, "dst_off", 256, "blocks[0].descriptors[0]", "256"),
        (0, None, "count", 0, "1 to 8", "0"),
        (1, None, "count", 9, "1 to 8", "9"),
        (1, None, "bytes", 25, "lengths, 20", "25"),
    ],
)
def test_invalid_descriptors_are_rejected_with_their_index(
    block: int, index: int | None, field: str, value: int, expected: str, got: str
) -> None:
    plan = made(*GOOD)
    WORKLOADS.require_valid(plan, LONGEST)
    target = plan.blocks[block] if index is None else plan.blocks[block]["descriptors"][index]
    target[field] = value
    with pytest.raises(FieldError) as caught:
        WORKLOADS.require_valid(plan, LONGEST)
    place = "" if index is None else f".descriptors[{index}]"
    assert caught.value.field == f"blocks[{block}]{place}.{field}"
    expected_text, _, got_text = str(caught.value).partition(", got ")
    assert expected in expected_text and got_text.startswith(got)


def test_blocks_that_belong_to_no_chunk_are_rejected() -> None:
    plan = replace(made(*GOOD), blocks_of_chunks=(1, 2))
    with pytest.raises(FieldError, match="blocks_of_chunks: expected 2 in all"):
        WORKLOADS.require_valid(plan, LONGEST)


@given(chunks=random_chunks(), data=st.data())
def test_an_overlap_is_rejected_at_the_first_descriptor_that_has_one(
    chunks: list[list[tuple[int, int, int]]], data: st.DataObject
) -> None:
    flat = [descriptor for chunk in chunks for descriptor in chunk]
    moved = data.draw(st.integers(0, len(flat) - 1))
    to = data.draw(st.integers(GUARD, max(at for _, _, at in flat)))
    flat[moved] = (*flat[moved][:2], to)
    plan = made(flat)
    owner: dict[int, int] = {}
    first = None
    for index, (_, length, at) in enumerate(flat):
        if any(owner.setdefault(byte, index) != index for byte in range(at, at + length)):
            first = index
            break
    if first is None:
        WORKLOADS.require_valid(plan, LONGEST)
        return
    block, position = divmod(first, ROOM)
    with pytest.raises(FieldError) as caught:
        WORKLOADS.require_valid(plan, LONGEST)
    assert caught.value.field == f"blocks[{block}].descriptors[{position}].dst_off"


def test_the_block_is_laid_out_as_the_kernels_read_it() -> None:
    block = WORKLOADS.block_type(2048)
    assert [(name, block.fields[name][1]) for name in block.names] == [
        *(("count", 0), ("reserved", 4), ("bytes", 8), ("bounce", 16), ("dst", 24)),
        ("descriptors", 32),
    ]
    assert (block.itemsize, WORKLOADS.DESCRIPTOR.itemsize) == (32 + 2048 * 16, 16)
