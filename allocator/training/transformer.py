"""A small transformer whose operations are deterministic, in the backward pass, too."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Shape:
    """Dimensions of a model. `longest` is the maximum number of tokens of a sequence."""

    layers: int
    width: int
    heads: int
    vocabulary: int
    longest: int


@dataclass(frozen=True)
class Layer:
    """Weights of a layer, each [out, in]."""

    projections: Any
    attended: Any
    wider: Any
    narrower: Any


class Cache:
    """KV cache by layer, [batch, heads, tokens, channels], in tensors that are copied into longer
    ones with every token."""

    def __init__(self) -> None:
        self._kept: dict[int, tuple[Any, Any]] = {}
        self.length = 0

    def extend(self, layer: int, keys: Any, values: Any) -> tuple[Any, Any]:
        """Append new tokens; returns all keys and values of the layer."""
        import torch

        if layer in self._kept:
            old_keys, old_values = self._kept[layer]
            keys, values = torch.cat([old_keys, keys], 2), torch.cat([old_values, values], 2)
        self._kept[layer] = keys, values
        return keys, values


class Transformer:
    """A decoder that shares the weights of output and embedding. Weights are random."""

    def __init__(self, shape: Shape, device: str, dtype: Any = None) -> None:
        """Create weights of `dtype`, float32 by default."""
        import torch

        random = torch.Generator(device).manual_seed(0)

        def weights(rows: int, columns: int) -> Any:
            drawn = torch.randn(rows, columns, generator=random, device=device)
            return (0.02 * drawn).to(dtype)

        width = shape.width
        self._shape = shape
        self._tokens = weights(shape.vocabulary, width)
        self._positions = weights(shape.longest, width)
        self._layers = [
            Layer(
                weights(3 * width, width),
                weights(width, width),
                weights(4 * width, width),
                weights(width, 4 * width),
            )
            for _ in range(shape.layers)
        ]
        later = torch.ones(shape.longest, shape.longest, dtype=torch.bool, device=device)
        self._later = later.triu(1)

    def parameters(self) -> list[Any]:
        layers = [[a.projections, a.attended, a.wider, a.narrower] for a in self._layers]
        return [self._tokens, self._positions, *(one for layer in layers for one in layer)]

    def logits(self, tokens: Any, cache: Cache | None = None) -> Any:
        """Logits [batch, tokens, vocabulary] of int64 [batch, tokens], which follow the tokens in
        `cache` and are added to it."""
        from torch.nn import functional

        width = (self._shape.width,)
        start = cache.length if cache is not None else 0
        rows = slice(start, start + tokens.shape[1])
        x = functional.embedding(tokens, self._tokens) + self._positions[rows]
        for number, layer in enumerate(self._layers):
            normed = functional.layer_norm(x, width)
            x = x + self._attention(normed, number, rows, cache)
            wider = functional.gelu(functional.linear(functional.layer_norm(x, width), layer.wider))
            x = x + functional.linear(wider, layer.narrower)
        if cache is not None:
            cache.length = rows.stop
        return functional.linear(functional.layer_norm(x, width), self._tokens)

    def _attention(self, x: Any, number: int, rows: slice, cache: Cache | None) -> Any:
        from torch.nn import functional

        layer, heads = self._layers[number], self._shape.heads
        queries, keys, values = (
            part.unflatten(-1, (heads, -1)).transpose(1, 2)
            for part in functional.linear(x, layer.projections).chunk(3, -1)
        )
        if cache is not None:
            keys, values = cache.extend(number, keys, values)
        scores = queries @ keys.transpose(-2, -1) / math.sqrt(self._shape.width // heads)
        shares = scores.masked_fill(self._later[rows, : rows.stop], -math.inf).softmax(-1)
        return functional.linear((shares @ values).transpose(1, 2).flatten(2), layer.attended)
