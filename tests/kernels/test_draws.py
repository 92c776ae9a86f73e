"""The rows that launches read: in their pool, distinct, in order or in runs, as the study says."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

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


def case(**values: CaseValue) -> Case:
    return Case(values, 656 * int(values["rows"]), "default")


def pairs(rng: Rng, draw: str) -> Any:
    values: dict[str, CaseValue] = {"bs": 8, "topk": 16, "draw": draw}
    return GATHER.draw_pairs(Case(values, 0, "default"), 130, rng)[..., 0].reshape(1, -1)


def of_pool(rng: Rng, layout: str) -> Any:
    return POOL.draw_sets(case(rows=2**14, layout=layout), 2**17, rng)


def walks(rng: Rng, order: str, rows: int = 300) -> Any:
    about = case(rows=rows, pool_mib=1, row_bytes=656, order=order)
    return WALKS.Walk(about, rng).places.reshape(-1, rows)


DISTINCT, ASCENDING = "distinct", "ascending"
DRAWN: dict[str, tuple[Callable[[Rng], Any], int, int | str]] = {
    "gather, permutation": (lambda rng: pairs(rng, "permutation"), 130, DISTINCT),
    "gather, with_replacement": (lambda rng: pairs(rng, "with_replacement"), 130, ""),
    "peers": (lambda rng: PEERS.drawn(case(rows=1598), 1598, rng).sources, 1598, DISTINCT),
    "pool, scattered": (lambda rng: of_pool(rng, "scattered"), 2**17, ""),
    "pool, distinct": (lambda rng: of_pool(rng, "distinct"), 2**17, DISTINCT),
    "pool, contiguous": (lambda rng: of_pool(rng, "contiguous"), 2**17, ""),
    "pool, pages_2": (lambda rng: of_pool(rng, "pages_2"), 2**17, 2),
    "pool, pages_64": (lambda rng: of_pool(rng, "pages_64"), 2**17, 64),
    "walks, random": (lambda rng: walks(rng, "random"), 1598, DISTINCT),
    "walks, most of a pool": (lambda rng: walks(rng, "random", 1500), 1598, DISTINCT),
    "walks, ascending": (lambda rng: walks(rng, "ascending"), 1598, ASCENDING),
    "places, scattered": (lambda rng: draw_places(2, 960, 5000, "scattered", rng), 5000, DISTINCT),
    "places, pages_16": (lambda rng: draw_places(2, 960, 5000, "pages_16", rng), 5000, 16),
}
"""Sets of rows, the rows of their pool, and what is said of a set: an order, or the rows of each
aligned run."""


@pytest.mark.parametrize("name", DRAWN)
def test_rows_are_drawn_as_the_study_says(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(WALKS, "MIN_DRAWN_ROWS", 4096)
    draw, pool_rows, kind = DRAWN[name]
    sets = draw(np.random.default_rng(0))
    assert sets.min() >= 0 and 0.9 * pool_rows < sets.max() < pool_rows
    assert len({tuple(rows) for rows in sets.tolist()}) == len(sets)
    for rows in sets:
        assert (kind == ASCENDING) == bool((np.diff(rows) > 0).all())
        may_repeat = kind not in (DISTINCT, ASCENDING) and not name.startswith("places")
        assert may_repeat or len(np.unique(rows)) == len(rows)
        runs = rows.reshape(-1, kind if isinstance(kind, int) else 1)
        assert (np.diff(runs, axis=1) == 1).all() and (runs[:, 0] % runs.shape[1] == 0).all()


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
    values: dict[str, CaseValue] = {"row_bytes": 48, "stride_bytes": 80, "offset_bytes": 32}
    starts = CALIBRATION.row_starts(Case(values, 40 * 48, "default"), 4096, rng)
    assert len({*starts.tolist()}) == 40 and ((starts - 2) % 5 == 0).all()
