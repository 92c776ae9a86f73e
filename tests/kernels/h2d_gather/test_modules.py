"""The gather as modules: every kernel without spills, and arguments that are refused by name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.compiled import ARCH, QUICK, kernel_resources, module
from tests.kernels.on_device import OnDevice, multiple_of
from tests.repository import STUDIES

GATHER = STUDIES["h2d_gather"]
# One variant of each file; those that differ in constants only would not build otherwise.
KERNELS = list({v.path: v for v in reversed(GATHER.variants) if v.path.suffix == ".cu"}.values())
FURTHER = [
    pytest.param(arch, marks=pytest.mark.long) for arch in ("sm_80", "sm_89", "sm_100", "sm_120")
]


@pytest.mark.parametrize("arch", [ARCH, *FURTHER])
def test_every_kernel_builds_for_the_architecture_without_spills(arch: str) -> None:
    assert KERNELS
    for variant in KERNELS:
        found = kernel_resources(GATHER, variant, arch)
        assert found, f"{variant.name}: ptxas said nothing"
        for kernel in found:
            assert (kernel["study"], kernel["variant"]) == ("h2d_gather", variant.name)
            assert kernel["arch"] == arch
            assert 0 < int(kernel["registers"]) <= 255
            assert kernel["spill_store_bytes"] == kernel["spill_load_bytes"] == "0"


@pytest.fixture(scope="module")
def bind() -> Callable[..., Any]:
    built: Any = module(GATHER, KERNELS[0], optimisation=QUICK)
    assert built.row_bytes == GATHER.constants["token_bytes"]
    return lambda **arguments: built.bind(**arguments)


ROW = GATHER.constants["token_bytes"]
SRC = np.zeros((4, ROW), np.uint8)
BUFFER = np.zeros(5 * ROW, np.uint8)
UNALIGNED = BUFFER[8 + -BUFFER.ctypes.data % 16 :][: 4 * ROW].reshape(4, ROW)
DST = OnDevice((4, ROW), "|u1")
PAIRS = OnDevice((1, 2, 2), "<i4")


@pytest.mark.parametrize(
    ("field", "value", "expected", "got"),
    [
        ("src", SRC.astype(np.int8), "elements of type uint8", "int8"),
        ("src", np.zeros((4, ROW), np.float32), "elements of type uint8", "float32"),
        ("src", np.zeros((4, ROW - 16), np.uint8), f"shape (slots, {ROW})", f"(4, {ROW - 16})"),
        ("src", np.zeros(4 * ROW, np.uint8), f"shape (slots, {ROW})", f"({4 * ROW})"),
        ("src", np.zeros((8, ROW), np.uint8)[::2], "a contiguous array", "a strided one"),
        ("src", np.zeros((ROW, 4), np.uint8).T, "a contiguous array", "a strided one"),
        ("dst", np.zeros((4, ROW), np.uint8), "an array in GPU memory", "<class 'numpy.ndarray'>"),
        ("dst", OnDevice((4, ROW), "|i1"), "elements of type |u1", "|i1"),
        ("dst", OnDevice((4, ROW + 1), "|u1"), f"shape (slots, {ROW})", f"(4, {ROW + 1})"),
        ("dst", OnDevice((2, 2, ROW), "|u1"), f"shape (slots, {ROW})", f"(2, 2, {ROW})"),
        ("dst", OnDevice((4, ROW), "|u1", (2 * ROW, 1)), "a contiguous array", "strides"),
        ("pairs", np.zeros((1, 2, 2), np.int32), "an array in GPU memory", "numpy.ndarray"),
        ("pairs", OnDevice((1, 2, 2), "<i8"), "elements of type <i4", "<i8"),
        ("pairs", OnDevice((1, 2, 3), "<i4"), "shape (batch, topk, 2)", "(1, 2, 3)"),
        ("pairs", OnDevice((2, 2), "<i4"), "shape (batch, topk, 2)", "(2, 2)"),
        ("pairs", OnDevice((1, 2, 2), "<i4", (32, 16, 4)), "a contiguous array", "strides"),
        ("pairs", OnDevice((1, 0, 2), "<i4"), "shape (batch, topk, 2)", "(1, 0, 2)"),
        ("src", UNALIGNED, multiple_of(16), "0x"),
        ("dst", OnDevice((4, ROW), "|u1", address=0x18), multiple_of(16), "0x18"),
        ("pairs", OnDevice((1, 2, 2), "<i4", address=0x14), multiple_of(8), "0x14"),
        ("sm_launches", OnDevice((8,), "<i4"), "elements of type <u4", "<i4"),
    ],
)
@pytest.mark.long  # pool_gather's bindings check arguments by the same header
def test_bindings_name_the_argument_that_is_wrong(
    bind: Callable[..., Any], field: str, value: object, expected: str, got: str
) -> None:
    arguments = {"src": SRC, "dst": DST, "pairs": PAIRS} | {field: value}
    with pytest.raises(ValueError) as caught:
        bind(**arguments)
    said, _, said_got = str(caught.value).partition(", got ")
    assert said == f"{field}: expected {expected}"
    assert got in said_got


@pytest.mark.long
def test_bindings_refuse_pageable_memory_or_a_missing_driver_by_src(
    bind: Callable[..., Any],
) -> None:
    with pytest.raises((ValueError, RuntimeError), match=r"^src: "):
        bind(src=SRC, dst=DST, pairs=PAIRS)


@pytest.mark.long
@pytest.mark.parametrize("count", [2, len(KERNELS)])
def test_modules_of_one_study_stand_beside_each_other(count: int) -> None:
    variants = KERNELS[:count]
    modules = [module(GATHER, variant, optimisation=QUICK) for variant in variants]
    for what in ("__file__", "__name__", "bind", "Bound"):
        assert len({id(getattr(one, what)) for one in modules}) == count
    assert [Path(str(one.__file__)).stem for one in modules] == [v.name for v in variants]
