"""The arrays of the study's hot sets, as shipped operators use them."""

from __future__ import annotations

from collections.abc import Mapping

import torch


class State:
    """Arrays of one layer on the GPU: `places` int32 [requests, context_rows], `trace` int32
    [steps, requests, topk], `hot` uint8 [requests, slots, row_bytes].

    ValueError with several layers.
    """

    def __init__(self, arrays: Mapping[str, torch.Tensor]) -> None:
        layers = len(arrays["rows"])
        if layers != 1:
            raise ValueError(f"rows: expected one layer, got {layers}")
        self.places, self.hot = arrays["places"][0], arrays["hot"][0]
        self.trace = arrays["ids"]
        self._out, self._rows = arrays["out"][0], arrays["rows"][0]
        self.requests, self.slots = self._rows.shape
        self.topk = self._out.shape[1]

    def publish(self, at: torch.Tensor, rows: torch.Tensor) -> None:
        """Write what the check compares.

        at: row of `hot` of each id, counted through all requests, int32 [requests, topk]
        rows: row of the context in each slot, int32 [requests, slots]
        """
        firsts = torch.arange(self.requests, device=at.device, dtype=torch.int32) * self.slots
        self._out.copy_(at - firsts[:, None])
        self._rows.copy_(rows)
        torch.cuda.current_stream().synchronize()
