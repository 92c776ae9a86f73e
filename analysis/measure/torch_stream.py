"""Sets PyTorch's current stream once, outside the timed calls."""

from __future__ import annotations

import torch

_current: int | None = None


def use(stream: int) -> None:
    """Make PyTorch enqueue its operations on `stream`, a cudaStream_t."""
    global _current
    if stream != _current:
        torch.cuda.set_stream(torch.cuda.ExternalStream(stream))
        _current = stream
