"""Who moves which rows, and what must arrive."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from analysis.base.errors import FieldError
from analysis.measure.cell import Skip
from analysis.study import Case
from tests.kernels.peers.fake import MIB, PEERS, Mover, case, fake_workload

CASES = [case(16, 300), case(4096, 100), case(1024, 7)]


def bound(monkeypatch: pytest.MonkeyPatch, name: str, of: Case) -> Any:
    """The variant bound to the case and launched once, and what moves its rows."""
    variant = PEERS.variant(name)
    mover = Mover(variant.path)
    inputs = fake_workload(monkeypatch, tile=MIB // 2 + 16).prepare(of)
    operation = inputs.bind(variant, mover)
    operation.inputs = inputs  # whose memory is read at its addresses
    operation.poison()
    operation.launch(0)
    return operation, mover


@pytest.mark.parametrize("name", ["pulled", "four_links", "two_links_apart", "to_host"])
@pytest.mark.parametrize("of", CASES, ids=lambda of: of.id)
def test_what_arrives_is_what_the_pool_holds(
    monkeypatch: pytest.MonkeyPatch, name: str, of: Case
) -> None:
    operation, mover = bound(monkeypatch, name, of)
    assert operation.check() is None
    ends = [part.begin + part.rows for part in mover.parts]
    assert [part.begin for part in mover.parts] == [0, *ends[:-1]]
    assert ends[-1] == of.number("rows")


def test_a_neighbour_is_waited_for_before_each_launch_and_its_rows_are_checked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    operation, mover = bound(monkeypatch, "pulled_beside_gather", case())
    operation.reset(0)
    assert mover.rejoined == 1
    operation._parts[1].output.fill(0)
    assert operation.check().startswith("GPU 1: destination row 0, byte")
    assert bound(monkeypatch, "pulled", case())[0].reset is None


def test_the_set_of_the_check_is_not_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    operation, mover = bound(monkeypatch, "pulled", case(rows=200000, row_bytes=16, pool_mib=4))
    for _ in range(5):
        operation.launch(0)
    assert mover.sets == [0, 1, 2, 3, 1, 2]
    operation.poison()
    assert mover.sets == []


def test_rows_of_a_launch_are_distinct(monkeypatch: pytest.MonkeyPatch) -> None:
    inputs = fake_workload(monkeypatch).prepare(case(rows=1598))
    assert all(len(np.unique(rows)) == 1598 for rows in inputs._launches["gather"].sources)
    assert (np.diff(inputs._launches["copy"].sources) == 1).all()


@pytest.mark.parametrize(
    ("field", "value"),
    [("rows", 0), ("rows", 1599), ("row_bytes", 24), ("row_bytes", 4112), ("row_bytes", 0)],
)
def test_sizes_that_make_no_sense_are_refused(
    monkeypatch: pytest.MonkeyPatch, field: str, value: int
) -> None:
    with pytest.raises(FieldError, match=f": {field}: expected"):
        fake_workload(monkeypatch).prepare(case(**{field: value}))


def test_a_pool_that_does_not_fit_the_peer_is_skipped_with_the_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    variant = PEERS.variant("pulled")
    inputs = fake_workload(monkeypatch, room=MIB - 1).prepare(case())
    with pytest.raises(Skip, match="a pool of 1048576 B: GPU 1 allows 1048575 B"):
        inputs.bind(variant, Mover(variant.path))
