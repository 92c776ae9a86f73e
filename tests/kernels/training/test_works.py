"""What is done with an allocator, as far as it needs no GPU."""

from __future__ import annotations

from itertools import permutations

import pytest

from analysis.modules import load_python
from tests.repository import STUDIES

STUDY = STUDIES["training"]
WORKS = load_python(STUDY, "works")


def test_two_graphs_are_replayed_in_all_orders_and_ten_in_others_each_time() -> None:
    assert WORKS.orders(2, 10) == list(permutations(range(2)))
    ten = WORKS.orders(10, 10)
    assert ten == WORKS.orders(10, 10)
    assert len({tuple(order) for order in ten}) == 10
    assert all(sorted(order) == list(range(10)) for order in ten)


def test_sequences_differ_in_length_and_are_the_same_each_time() -> None:
    lengths = WORKS.lengths(16, 32, 128, 1)
    assert lengths == WORKS.lengths(16, 32, 128, 1)
    assert len(set(lengths)) > 10
    assert all(32 <= length < 128 for length in lengths)
    assert all(length % 8 == 0 for length in WORKS.lengths(8, 128, 512, 8))


def test_times_of_several_parts_are_added() -> None:
    parts = [WORKS.Times(1, 2, 3), WORKS.Times(10, 20, 30)]
    assert WORKS.together(parts) == WORKS.Times(11, 22, 33)


def tiny() -> object:
    return WORKS.Shape(layers=2, width=32, heads=4, vocabulary=64, longest=64)


def test_training_begins_anew_with_each_run() -> None:
    pytest.importorskip("torch")
    training = WORKS.Training(WORKS.Plan(tiny(), 2, [8, 16, 5]), "cpu")
    first = training.run()
    assert len(first.values) == training.steps == 3
    assert len(set(first.values)) == 3
    assert training.run().values == first.values


def test_inference_with_a_cache_is_inference_without() -> None:
    torch = pytest.importorskip("torch")
    transformer = load_python(STUDY, "transformer")
    model, cache = transformer.Transformer(tiny(), "cpu"), transformer.Cache()
    tokens = torch.arange(20).reshape(2, 10)
    parts = [model.logits(tokens[:, part], cache) for part in (slice(0, 6), slice(6, 10))]
    assert torch.allclose(torch.cat(parts, 1), model.logits(tokens), atol=1e-6)
    decoding = WORKS.Decoding(tiny(), 2, (4, 6), 5, "cpu")
    values = decoding.run().values
    assert len(values) == 2 * decoding.steps == 20
    assert decoding.run().values == values
