"""The gather from a pool as modules: machine code, and arguments refused by name."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.compiled import QUICK, module
from tests.kernels.pool_gather.fake import POOL

ROW = POOL.constants["token_bytes"]


def on_device(
    shape: tuple[int, ...], typestr: str, strides: Any = None, address: int = 0x10
) -> Any:
    """An array that claims to be in GPU memory, at an address that must never be read."""
    interface = {"shape": shape, "typestr": typestr, "strides": strides, "version": 3}
    return SimpleNamespace(__cuda_array_interface__={**interface, "data": (address, False)})


RIGHT: dict[str, Any] = {
    "pool": np.zeros((4, ROW), np.uint8),
    "dst": on_device((4, ROW), "|u1"),
    "pairs": on_device((1, 2, 2), "<i4"),
    "sm_launches": on_device((8,), "<u4"),
    "scales": None,
    "cpus": [],
    "current": np.zeros(1, np.int64),
}
VECTORS = "an address that is a multiple of"


def bind(name: str, **changes: Any) -> Any:
    built: Any = module(POOL, POOL.variant(name), optimisation=QUICK)
    return built.bind(**{**RIGHT, **changes})


@pytest.mark.parametrize(
    ("field", "value", "expected", "got"),
    [
        ("pool", np.zeros((4, ROW), np.int8), "elements of type uint8", "int8"),
        ("pool", np.zeros((4, ROW - 16), np.uint8), f"shape (rows, {ROW})", f"(4, {ROW - 16})"),
        ("pool", np.zeros((8, ROW), np.uint8)[::2], "a contiguous array", "a strided one"),
        ("dst", np.zeros((4, ROW), np.uint8), "an array in GPU memory", "<class 'numpy.ndarray'>"),
        ("dst", on_device((4, ROW + 1), "|u1"), f"shape (rows, {ROW})", f"(4, {ROW + 1})"),
        ("dst", on_device((4, ROW), "|u1", (2 * ROW, 1)), "a contiguous array", "strides"),
        ("pairs", on_device((2, 2), "<i4"), "shape (sets, rows, 2)", "(2, 2)"),
        ("pairs", on_device((0, 2, 2), "<i4"), "shape (sets, rows, 2)", "(0, 2, 2)"),
        ("pairs", on_device((1, 2, 2), "<i8"), "elements of type <i4", "<i8"),
        ("sm_launches", on_device((2, 4), "<u4"), "shape (SMs)", "(2, 4)"),
        ("current", np.zeros(2, np.int64), "shape (1)", "(2)"),
        ("dst", on_device((4, ROW), "|u1", address=0x18), f"{VECTORS} 16", "0x18"),
        ("pairs", on_device((1, 2, 2), "<i4", address=0x14), f"{VECTORS} 8", "0x14"),
    ],
)
def test_bindings_name_the_argument_that_is_wrong(
    field: str, value: object, expected: str, got: str
) -> None:
    with pytest.raises(ValueError) as caught:
        bind("loads_first", **{field: value})
    said, _, said_got = str(caught.value).partition(", got ")
    assert said == f"{field}: expected {expected}"
    assert got in said_got


@pytest.mark.long  # its bindings are compiled for it alone
def test_slots_without_scales_need_the_table_of_them() -> None:
    slots = np.zeros((4, ROW - 16), np.uint8)
    with pytest.raises(ValueError, match="scales: expected an array in GPU memory"):
        bind("split_row", pool=slots)
    with pytest.raises(ValueError, match=r"scales: expected shape \(4, 16\), got \(3, 16\)"):
        bind("split_row", pool=slots, scales=on_device((3, 16), "|u1"))


def test_bindings_refuse_pageable_memory_or_a_missing_driver_by_pool() -> None:
    with pytest.raises((ValueError, RuntimeError), match=r"^pool: "):
        bind("loads_first")
