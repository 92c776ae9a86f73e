"""The rows that launches read: in their pool, distinct, in order or in runs, as the study says."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
import pytest

from analysis.base.errors import FieldError
from analysis.study import Case, CaseValue
from analysis.toolchain.modules import load_python
from kernels.common.draws import consecutive_sets
from kernels.hot_set.traces import draw_places
from tests.repository import STUDIES

Rng = np.random.Generator
GATHER, CALIBRATION, WALKS = (
    load_python(STUDIES[name], "workload")
    for name in ("h2d_gather", "link_calibration", "translation")
)
PEERS, POOL = (load_python(STUDIES[name], "draws") for name in ("peers", "pool_gather"))


class Drawn(NamedTuple):
    """Sets of rows from a pool, each of aligned runs of `run` rows; of other sets, rows are not
    aligned, distinct or ascending unless it says so."""

    sets: Callable[[Rng], np.ndarray]
    pool_rows: int
    is_distinct: bool = False
    run: int = 1
    is_ascending: bool = False


def case(**values: CaseValue) -> Case:
    return Case(values, 0, "default")


def of_gather(draw: str) -> Drawn:
    def sets(rng: Rng) -> np.ndarray:
        rows: np.ndarray = GATHER.draw_pairs(case(bs=8, topk=16, draw=draw), 130, rng)[..., 0]
        return rows.reshape(1, -1)

    return Drawn(sets, 130, draw == "permutation")


def of_pool(layout: str, *, is_distinct: bool = False, run: int = 1) -> Drawn:
    about = case(rows=2**14, pool_mib=1, layout=layout)
    return Drawn(lambda rng: POOL.draw_sets(about, 2**17, rng), 2**17, is_distinct, run)


def of_walks(order: str, rows: int) -> Drawn:
    values: Mapping[str, CaseValue] = {"pool_mib": 1, "row_bytes": 656, "order": order}
    about = Case({**values, "rows": rows}, rows * 656, "default")

    def sets(rng: Rng) -> np.ndarray:
        places: np.ndarray = WALKS.Walk(about, rng).places
        return places.reshape(-1, rows)

    return Drawn(sets, 1598, is_distinct=True, is_ascending=order == "ascending")


def of_places(layout: str, run: int) -> Drawn:
    return Drawn(lambda rng: draw_places(2, 960, 100_000, layout, rng), 100_000, True, run)


DRAWN = {
    "gather, permutation": of_gather("permutation"),
    "gather, with_replacement": of_gather("with_replacement"),
    "peers": Drawn(lambda rng: PEERS.drawn(case(rows=1598), 1598, rng).sources, 1598, True),
    "pool, scattered": of_pool("scattered"),
    "pool, distinct": of_pool("distinct", is_distinct=True),
    "pool, contiguous": of_pool("contiguous"),
    **{f"pool, pages_{run}": of_pool(f"pages_{run}", run=run) for run in (2, 64)},
    **{
        f"walks, {way} {n}": of_walks(way, n) for way in ("random", "ascending") for n in (40, 1598)
    },
    "places, scattered": of_places("scattered", 1),
    "places, pages_16": of_places("pages_16", 16),
}


@pytest.mark.parametrize("name", DRAWN)
def test_rows_are_drawn_as_the_study_says(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(WALKS, "MIN_DRAWN_ROWS", 4096)
    drawn = DRAWN[name]
    sets = drawn.sets(np.random.default_rng(0))
    assert sets.min() >= 0 and 0.98 * drawn.pool_rows < sets.max() < drawn.pool_rows
    assert len({tuple(rows) for rows in sets.tolist()}) == len(sets)
    for rows in sets:
        assert not drawn.is_distinct or len(np.unique(rows)) == len(rows)
        assert drawn.is_ascending == bool((np.diff(rows) > 0).all())
        runs = rows.reshape(-1, drawn.run)
        assert (np.diff(runs, axis=1) == 1).all() and (runs[:, 0] % drawn.run == 0).all()


def test_sets_of_a_pool_are_more_than_a_cache_holds() -> None:
    rng = np.random.default_rng(0)
    for rows in (2048, 262144):
        sets = POOL.draw_sets(case(rows=rows, layout="scattered"), 65_000_000, rng)
        assert len(sets) >= 4 and sets.size >= 2**20
    assert len(POOL.draw_sets(case(rows=2048, layout="repeated"), 65_000_000, rng)) == 1
    requests = POOL.draw_sets(case(rows=2**14, layout="contiguous"), 2**20, rng)
    requests = requests.reshape(-1, POOL.REQUEST_ROWS)
    assert np.ptp(requests, axis=1).max() < POOL.STRETCH_ROWS


def test_consecutive_rows_begin_anywhere() -> None:
    rng = np.random.default_rng(0)
    places = draw_places(2, 960, 100_000, "consecutive", rng)
    for sets in (consecutive_sets(10, 50, 12, rng), places):
        assert (np.diff(sets, axis=1) == 1).all() and len({*sets[:, 0]}) > 1
    about = case(row_bytes=48, stride_bytes=80, offset_bytes=32)
    starts = CALIBRATION.row_starts(Case(about.values, 40 * 48, "default"), 4096, rng)
    assert len({*starts.tolist()}) == 40 and ((starts - 2) % 5 == 0).all()


def test_places_that_cannot_be_drawn_are_an_error() -> None:
    for rows, layout, message in (
        (101, "scattered", "context_rows: expected 1 to 100"),
        (97, "pages_16", "pool_rows: expected room for 7 pages of 16 rows, got 100"),
        (9, "pages", "layout: expected scattered, pages_N or consecutive, got 'pages'"),
    ):
        with pytest.raises(FieldError, match=f"^{message}"):
            draw_places(1, rows, 100, layout, np.random.default_rng(0))
