"""FlashMLA's sparse decode of fp8 rows, as the sglang-kernel wheel ships it, and its reference.

A row has 656 bytes: 512 values in fp8, four scales of 128 of them each in fp32, and 64 values in
bf16 that depend on the position.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import torch

from analysis.api.peers import flash_mla_operators

HEADS: Final = 128
VALUES: Final = 512
POSITIONS: Final = 64
SCALED: Final = 128
"""Values that one scale belongs to."""
BLOCK_ROWS: Final = 64
SCALE: Final = (VALUES + POSITIONS) ** -0.5
TOLERANCE: Final = 0.02
"""Difference from the reference, as a share of its largest value, that bf16 explains."""
CHUNK_ROWS: Final = 1 << 20


def make_rows(pool: np.ndarray) -> None:
    """Turn random bytes into rows with finite values, in place.

    pool: uint8 [rows, 656]. Nearly all bits stay, so rows still differ.
    """
    for first in range(0, len(pool), CHUNK_ROWS):
        host = torch.from_numpy(pool[first : first + CHUNK_ROWS])
        rows = host.cuda()
        values = rows[:, :VALUES]
        values[(values & 0x7F) == 0x7F] = 0  # the code of no number
        scales = rows[:, VALUES : VALUES + 16].view(torch.int32)
        scales.bitwise_and_(0x007FFFFF).bitwise_or_(0x3F800000)  # 1 to 2
        positions = rows[:, VALUES + 16 :].view(torch.int16)
        positions.bitwise_and_(-0x7F81).bitwise_or_(0x3F00)  # a half to 1, of either sign
        host.copy_(rows)
    torch.cuda.synchronize()


class Attention:
    """Decodes one token of each request over rows that are in the hot sets.

    hot: uint8 [layers, requests, slots, 656] on the GPU
    """

    def __init__(self, hot: torch.Tensor, topk: int, generator: torch.Generator) -> None:
        self._decode = flash_mla_operators().sparse_decode_fwd.default
        layers, requests = hot.shape[:2]
        blocks = hot.view(layers, -1, BLOCK_ROWS, 1, hot.shape[3])
        self._caches = blocks.view(torch.float8_e4m3fn)
        shape = requests, 1, HEADS, VALUES + POSITIONS
        drawn = torch.randn(shape, device=hot.device, generator=generator) * 0.01
        self.queries = drawn.bfloat16()
        # Its first call makes the plan of the blocks, which depends on the shape only.
        self._plan: tuple[Any, Any] = None, None
        somewhere = torch.zeros(requests, topk, dtype=torch.int32, device=hot.device)
        self._plan = self._call(0, somewhere)[2:]

    def __call__(self, layer: int, slots: torch.Tensor) -> torch.Tensor:
        """bf16 [requests, 1, 128, 512]; slots int32 [requests, topk], among those of all
        requests."""
        out: torch.Tensor = self._call(layer, slots)[0]
        return out

    def _call(self, layer: int, slots: torch.Tensor) -> Any:
        return self._decode(
            *(self.queries, self._caches[layer], slots.unsqueeze(1), None, None, *self._plan),
            *(None, None, None, VALUES, SCALE),
        )


def expected(queries: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
    """fp32 [128, 512]: the attention of one request by its plain definition.

    queries: bf16 [1, 128, 576]; rows: uint8 [topk, 656]
    """
    scales = rows[:, VALUES : VALUES + 16].contiguous().view(torch.float32)
    values = rows[:, :VALUES].contiguous().view(torch.float8_e4m3fn).float()
    values *= scales.repeat_interleave(SCALED, 1)
    positions = rows[:, VALUES + 16 :].contiguous().view(torch.bfloat16).float()
    keys = torch.cat([values, positions], 1)
    weights = torch.softmax(queries[0].float() @ keys.T * SCALE, 1)
    return weights @ values


def difference(found: torch.Tensor, wanted: torch.Tensor) -> str | None:
    """None if the attention is right, else by how much it differs."""
    worst = float((found.float() - wanted).abs().max() / wanted.abs().max())
    if worst <= TOLERANCE:
        return None
    return f"attention: expected values within {TOLERANCE} of the largest, got {worst:.3g}"
