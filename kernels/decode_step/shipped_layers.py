"""A shipped operator of one layer, once for each layer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch

from kernels.hot_set.shipped_state import State


class ShippedLayers:
    """Operators that `bind_layer(pool, state)` makes of the layers' arrays.

    `held(bound)` is the row in each slot of a layer, int [requests, slots], in the operator's own
    terms.
    """

    def __init__(
        self,
        bind_layer: Callable[[np.ndarray, State], Any],
        held: Callable[[Any], torch.Tensor],
        pool: np.ndarray,
        arrays: Mapping[str, torch.Tensor],
    ) -> None:
        self._held = held
        layers = range(len(arrays["rows"]))
        ids = arrays["ids"]
        names = "places", "hot", "out", "rows"
        states = (
            State({"ids": ids[:, n], **{name: arrays[name][n : n + 1] for name in names}})
            for n in layers
        )
        self._layers = [bind_layer(pool, state) for state in states]

    def advance(self, stream: int, index: int, number: int) -> None:
        for layer in self._layers:
            layer.advance(stream, index, number)

    def launch_layer(self, stream: int, layer: int) -> None:
        self._layers[layer].launch(stream)

    def slots(self, layer: int) -> torch.Tensor:
        """Slot of each id among those of all requests, int32 [requests, topk]."""
        found: torch.Tensor = self._layers[layer]._out
        return found

    def held(self, layer: int) -> torch.Tensor:
        return self._held(self._layers[layer])

    def close(self) -> None:
        self._layers.clear()
