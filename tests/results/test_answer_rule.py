"""The rule of every answer, and the spans in which the browser looks one up."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.results.tables.answers import Answer, Point, Spans, Times, all_answers, answer

ORDER = ["loop", "batch", "gather"]
"""The simplest first."""
GRID: Times = {point: {"loop": 1.0} for point in [*product((100, 400), (10, 40)), (1000, 10)]}


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ((100, 40), [(100, 40)]),
        ((100, 20), [(100, 10), (100, 40)]),
        ((200, 20), [(100, 10), (100, 40), (400, 10), (400, 40)]),
        ((700, 10), [(400, 10), (1000, 10)]),
        ((700, 40), []),  # sizes above 400 have one number of pieces only
        ((500, 40), [(400, 40)]),
        ((501, 40), []),
        ((1250, 12), [(1000, 10)]),
        ((80, 50), [(100, 40)]),
        ((79, 10), []),
    ],
)
def test_corners_are_the_neighbours_or_a_near_end(asked: Point, expected: list[Point]) -> None:
    found = answer(GRID, ORDER, asked)
    assert [*(found.corners if found else ())] == expected


def test_the_simplest_of_equally_fast_ways_of_every_corner_is_taken() -> None:
    times: Times = {(1, 1): {"gather": 100.0, "loop": 104.8, "batch": 104.0}}
    found = answer(times, ORDER, (1, 1))
    assert found is not None and found.way == "loop"
    assert list(found.seconds) == ["gather", "batch", "loop"]
    (remark,) = found.remarks(str.upper)
    assert remark == "Not the fastest, but simpler: GATHER is 4.8 % faster."
    slower = answer({(1, 1): {**times[1, 1], "loop": 105.2}}, ORDER, (1, 1))
    assert slower is not None and slower.way == "batch"
    some = answer(
        {(1,): {"gather": 1.0, "loop": 3.0}, (9,): {"loop": 3.0, "batch": 2.0}}, ORDER, (4,)
    )
    assert some is not None
    assert (some.way, some.not_everywhere) == ("loop", ("gather", "batch"))
    assert answer({(1,): {"gather": 1.0}, (9,): {"loop": 3.0}}, ORDER, (4,)) is None


def looked_up(answers: list[Answer], spans: Spans, asked: Point) -> Answer | None:
    """The answer in `spans`, as the script of a form looks it up."""
    for low, high, inner in spans:
        if low <= asked[0] <= high:
            if isinstance(inner, int):
                return answers[inner]
            return looked_up(answers, inner, asked[1:])
    return None


POINTS = st.tuples(st.integers(1, 40), st.integers(1, 40))
WAYS = st.dictionaries(st.sampled_from(ORDER), st.floats(1, 9), min_size=1)


@given(st.dictionaries(POINTS, WAYS, max_size=6))
def test_spans_hold_the_answer_to_every_question(times: Times) -> None:
    answers, spans = all_answers(times, ORDER)
    values = {max(1, round(v * f)) for point in times for v in point for f in (0.7, 0.8, 1, 1.25)}
    for asked in product(sorted({1, 60} | values | {v + 1 for v in values}), repeat=2):
        assert looked_up(answers, spans, asked) == answer(times, ORDER, asked)
