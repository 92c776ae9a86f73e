"""Ids of every step of all layers, with a given number of misses, drawn on the GPU."""

from __future__ import annotations

from dataclasses import dataclass

import torch

WARMUP_STEPS = 2
"""Steps of new rows that occupy all slots, which are twice as many as a step's rows."""


@dataclass(frozen=True)
class Shape:
    """`sets` hot sets (of all layers and requests), of which a step uses `topk` rows each."""

    sets: int
    topk: int
    slots: int
    context_rows: int
    misses: int
    steps: int


def draw_ids(shape: Shape, generator: torch.Generator) -> torch.Tensor:
    """int32 [WARMUP_STEPS + steps, sets, topk]: rows of a context of `context_rows`.

    After the warm-up, each step replaces `misses` rows of every set by rows that have not been used
    for longer than the slots hold any, so that exactly these are missing.
    """
    cuda = generator.device
    if shape.slots != WARMUP_STEPS * shape.topk:
        raise ValueError(f"slots: expected {WARMUP_STEPS} times topk, got {shape.slots}")
    context = torch.rand(shape.sets, shape.context_rows, device=cuda, generator=generator)
    context = context.argsort(1).int()
    # The rows of the current step, and others in a ring, in the order of their last use.
    inside, ring = context[:, : shape.topk].clone(), context[:, shape.topk :].clone()
    head, steps = 0, [inside.clone()]
    for count in [shape.topk] * (WARMUP_STEPS - 1) + [shape.misses] * shape.steps:
        draws = torch.rand(inside.shape, device=cuda, generator=generator)
        leaving = draws.argsort(1)[:, :count]
        at = (torch.arange(count, device=cuda) + head) % ring.shape[1]
        left = inside.gather(1, leaving)
        inside.scatter_(1, leaving, ring[:, at])
        ring[:, at] = left
        head = (head + count) % ring.shape[1]
        steps.append(inside.clone())
    return torch.stack(steps)


def draw_places(
    sets: int, context_rows: int, pool_rows: int, generator: torch.Generator
) -> torch.Tensor:
    """Pool row of each row of each context, int32 [sets, context_rows]: anywhere, and different for
    all rows of a context."""
    prime = _prime_at_most(pool_rows)
    if context_rows > prime:
        raise ValueError(f"context_rows: expected at most {prime}, got {context_rows}")
    factors, offsets = (
        torch.randint(1, prime, (sets, 1), device=generator.device, generator=generator)
        for _ in range(2)
    )
    rows = torch.arange(context_rows, device=generator.device)
    return ((rows * factors + offsets) % prime).int()


def _prime_at_most(number: int) -> int:
    def is_prime(one: int) -> bool:
        return all(one % divisor for divisor in range(2, int(one**0.5) + 1))

    return next(one for one in range(number, 1, -1) if is_prime(one))
