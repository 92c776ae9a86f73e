"""The arguments that the bindings of unpack accept, without a GPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.kernels.stubbed import stubbed
from tests.kernels.unpack.fake import UNPACK, WORKLOADS

pytestmark = pytest.mark.long  # the bindings are compiled for these tests alone


def blocks_of_one() -> np.ndarray:
    """Two blocks with one descriptor each, of 16 bytes, as the workload passes them."""
    blocks = np.zeros(2, WORKLOADS.block_type(UNPACK.constants["block_descriptors"]))
    blocks["count"], blocks["bytes"] = 1, 16
    blocks["descriptors"]["len"][:, 0] = 16
    return blocks.view(np.uint8).reshape(-1)


def bind(blocks: Any, of_chunks: tuple[int, ...] = (2,), bounce: tuple[int, int] = (0, 64)) -> Any:
    return stubbed(UNPACK, "one_copy").bind(blocks, of_chunks, *bounce, 0, 64)


def test_a_receive_is_unpacked() -> None:
    source, target = np.arange(64, dtype=np.uint8), np.zeros(64, np.uint8)
    ends = (source.ctypes.data, 64), (target.ctypes.data, 64)
    bound = stubbed(UNPACK, "one_copy").bind(blocks_of_one(), (1, 1), *ends[0], *ends[1])
    bound.launch(0)
    assert target[:32].tolist() == source[:32].tolist()
    assert not target[32:].any()


SHIFTED = np.zeros(blocks_of_one().size + 32, np.uint8)
EMPTY = np.zeros_like(blocks_of_one())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((blocks_of_one()[:-1],), "blocks: expected whole blocks of 32800 bytes, got 65599"),
        ((blocks_of_one(), (1,)), "blocks_of_chunks: expected all 2 blocks, got 1"),
        ((blocks_of_one(), (3,)), "blocks_of_chunks: expected no more than the 2 given, got 3"),
        ((blocks_of_one(), (2,), (8, 64)), "bounce: expected whole 16-byte vectors"),
        ((blocks_of_one(), (2,), (0, 60)), "bounce: expected .* vectors, got 60 bytes"),
        (
            (SHIFTED[-SHIFTED.ctypes.data % 16 + 8 :][: EMPTY.size],),
            "blocks: expected memory on a 16-byte boundary",
        ),
        ((EMPTY,), "count: expected 1 to 2048, got 0"),
    ],
)
def test_invalid_arguments_are_rejected(arguments: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        bind(*arguments)
