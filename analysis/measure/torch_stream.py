"""PyTorch's current stream, made so once and not within a call that is timed."""

from __future__ import annotations

import torch

_current: int | None = None


def use(stream: int) -> None:
    """Make `stream`, a cudaStream_t, the one that PyTorch's operations are enqueued on."""
    global _current
    if stream != _current:
        torch.cuda.set_stream(torch.cuda.ExternalStream(stream))
        _current = stream
