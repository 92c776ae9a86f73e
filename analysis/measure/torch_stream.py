"""Sets PyTorch's current stream once, outside the timed calls."""

from __future__ import annotations

import torch

_current = 0


def use(stream: int) -> None:
    """Make PyTorch enqueue its operations on `stream`, a cudaStream_t; 0 is its default stream."""
    global _current
    if stream != _current:
        external = torch.cuda.ExternalStream(stream) if stream else torch.cuda.default_stream()
        torch.cuda.set_stream(external)
        _current = stream
