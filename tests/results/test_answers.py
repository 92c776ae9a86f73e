"""The rule of every answer, the spans in which the browser looks one up, summaries and scores."""

import math
from dataclasses import replace
from itertools import product
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.results.answers.files import summarised
from analysis.results.answers.judged import (
    by_answer,
    by_rules,
    near_best,
    quality_rows,
    rule_text,
    score,
)
from analysis.results.answers.question import (
    HELD_OUT,
    MAP,
    Question,
    Rule,
    Situation,
    cases_of_sets,
    questions_of,
    unmeasured,
)
from analysis.results.answers.rule import Answer, Grid, Point, Spans, Times, all_answers, answer
from tests.repository import STUDIES

(PIECES,) = [one for one in questions_of(STUDIES["transfers"]) if one.name == "pieces"]
LOOP, BATCH, GATHER = "pinned_list_loop", "pinned_list_batch", "pinned_list_gather"
ORDER = ["loop", "batch", "gather"]
"""The simplest first."""
ONE: Final = [(1, 1)]
"""The corners of a question that was measured itself."""
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
    assert [*Grid(GRID).corners(asked)] == expected
    assert bool(answer(GRID, ORDER, Grid(GRID).corners(asked))) == bool(expected)


def test_the_simplest_of_equally_fast_ways_of_every_corner_is_taken() -> None:
    times: Times = {(1, 1): {"gather": 100.0, "loop": 104.8, "batch": 104.0}}
    found = answer(times, ORDER, ONE)
    assert found is not None and found.way == "loop"
    assert list(found.seconds) == ["gather", "batch", "loop"]
    (remark,) = found.remarks(str.upper)
    assert remark == "Not the fastest, but simpler: GATHER is 4.8 % faster."
    slower = answer({(1, 1): {**times[1, 1], "loop": 105.2}}, ORDER, ONE)
    assert slower is not None and slower.way == "batch"
    ends = [(1,), (9,)]
    some = answer(
        {(1,): {"gather": 1.0, "loop": 3.0}, (9,): {"loop": 3.0, "batch": 2.0}}, ORDER, ends
    )
    assert some is not None
    assert (some.way, some.not_everywhere) == ("loop", ("gather", "batch"))
    assert answer({(1,): {"gather": 1.0}, (9,): {"loop": 3.0}}, ORDER, ends) is None


POINTS = st.tuples(st.integers(1, 40), st.integers(1, 40))
WAYS = st.dictionaries(st.sampled_from(ORDER), st.floats(1, 9), min_size=1)


def look_up(answers: list[Answer], spans: Spans, asked: Point) -> Answer | None:
    """The answer to a question, as the script of the form looks it up; None without one."""
    for first, last, inner in spans:
        if first <= asked[0] <= last:
            return answers[inner] if isinstance(inner, int) else look_up(answers, inner, asked[1:])
    return None


@given(st.dictionaries(POINTS, WAYS, max_size=6))
def test_spans_hold_the_answer_to_every_question(times: Times) -> None:
    answers, spans = all_answers(times, ORDER)
    values = {max(1, round(v * f)) for point in times for v in point for f in (0.7, 0.8, 1, 1.25)}
    for asked in product(sorted({1, 60} | values | {v + 1 for v in values}), repeat=2):
        assert look_up(answers, spans, asked) == answer(times, ORDER, Grid(times).corners(asked))


def box(times: Times, question: Question = PIECES, **where: str) -> Situation:
    """Measured times of a machine called box with the choices that the form starts with."""
    start = {choice.name: next(iter(choice.options)) for choice in question.choices}
    here = Situation(question, "box", {**start, **where}, 50e9)
    for point, ways in times.items():
        here.times[point] |= ways
        here.payload[point] = math.prod(point)
    return here


def test_a_shipped_way_is_compared_but_never_the_answer() -> None:
    times: Times = {(1,): {"loop": 1.1, "batch": 1.0, "vllm": 0.5}}
    found = answer(times, ["loop", "batch"], [(1,)], ["vllm"])
    assert found is not None and (found.way, found.fastest) == ("batch", "batch")
    assert [*found.seconds] == ["vllm", "batch", "loop"] and found.over_fastest("loop") == 2.2
    assert answer({(1,): {"vllm": 1.0}}, ["loop"], [(1,)], ["vllm"]) is None


def test_a_time_is_interpolated_between_the_corners() -> None:
    times: Times = {(1, 1): {"loop": 1.0}, (1, 4): {"loop": 2.0}, (16, 1): {"loop": 4.0}}
    found = answer(times, ORDER, [(1, 1), (16, 1)])
    assert found is not None and found.time_at((4, 1), "loop") == pytest.approx(2.0)
    assert found.time_at((1, 1), "loop") == 1.0
    between = answer(times, ORDER, [(1, 1), (1, 4)])
    assert between is not None and between.time_at((1, 2), "loop") == pytest.approx(2**0.5)


def test_a_summary_agrees_with_the_answers_and_keeps_a_way_near_its_border() -> None:
    sizes = [2**n for n in range(32, 42)]  # whose products are beyond 64 bits
    times: Times = {(n, 64): {GATHER: 4 + n / 1e9, LOOP: 80 + n / 1e10} for n in sizes}
    made = summarised(PIECES, [box(times)])
    assert (made["cells"], made["agree_within_5_percent"]) == (10, 1.0)
    first, last = sorted(made["rows"], key=lambda row: row["range"]["size"][0])
    assert (first["way"], last["way"]) == (GATHER, LOOP)
    border = first["range"]["size"][1]
    assert border == last["range"]["size"][0] and 2**36 < border < 2**37
    assert (last["keep"]["size"][0], first["keep"]["size"][1]) == (2**36, 2**37)
    back: Times = {point: {LOOP: 1e-6, GATHER: 2e-6} for point in times}
    small: Times = {point: ways for point, ways in times.items() if point < (2**36, 0)}
    rows = summarised(PIECES, [box(small), box(back, direction="d2h")])["rows"]
    assert {row["way"]: row["where"]["direction"] for row in rows} == {
        GATHER: ["h2d"],
        LOOP: ["d2h"],
    }


def test_held_out_cells_score_ways_and_times() -> None:
    times: Times = {(64, 16): {LOOP: 1e-6, GATHER: 2e-6}, (1024, 16): {LOOP: 4e-6, GATHER: 2e-6}}
    here = box(times)
    here.held_out[256, 16] = {LOOP: 2e-6, GATHER: 2e-6}
    here.held_out[128, 16] = {LOOP: 3e-6, GATHER: 2e-6}
    here.held_out[128, 4096] = {LOOP: 3e-6, GATHER: 2e-6}
    here.held_out[80, 16] = {LOOP: 3e-6}  # no other way was measured
    found = score(by_answer, [here])
    assert len(found) == 3 and found["over_best"].max() == 1.5
    assert near_best(found) == pytest.approx(1 / 3)
    of_answers, *_ = quality_rows(PIECES, [here])
    assert of_answers["its time within 15 %"] == "50 %"
    (constants,) = PIECES.constants.values()
    assert [*score(by_rules(*constants), [here])["over_best"]] == [1.0, 1.0, 1.0]
    rule = Rule("", GATHER, {"direction": ["h2d"]}, {"size": (100, 2000)}, [GATHER, BATCH])
    assert rule_text(rule, [here]) == ""
    assert rule_text(replace(rule, among=()), [here]) == "100 % of 1 cell, at worst 1.000×"
    assert rule_text(replace(rule, among=(), where={"direction": ["d2h"]}), [here]) == ""


def test_a_map_leaves_out_points_that_hide_its_ways() -> None:
    few: Times = {(64, 16): {LOOP: 1e-6}, (128, 16): {LOOP: 1e-6, GATHER: 2e-6}}
    here = box({**few, (256, 16): {LOOP: 1e-6, GATHER: 2e-6}})
    here.drop_incomplete()
    assert len(here.times) == 3
    here.of_map.update([(128, 16), (256, 16)])
    here.drop_incomplete()
    assert [*here.times] == [(128, 16), (256, 16)]


def test_the_map_is_complete_or_says_what_is_missing() -> None:
    study = STUDIES["transfers"]
    of_map = cases_of_sets(study, MAP)
    known = {("box", v.name, c.id) for v in study.variants for c in v.cases if c.id in of_map}
    assert len(known) > 500 and not [*unmeasured(PIECES, study, known)]
    gap = next(cell for cell in sorted(known) if cell[1] == BATCH)
    assert [*unmeasured(PIECES, study, known - {gap})] == [gap]
    assert not [*unmeasured(PIECES, study, set())]  # of a machine that measured nothing of it
    assert cases_of_sets(study, HELD_OUT) and not cases_of_sets(study, HELD_OUT) & of_map


def test_a_summary_has_at_most_thirty_rows() -> None:
    times: Times = {
        (n, 64): {(GATHER, LOOP)[n // 16 % 2]: 1e-6, BATCH: 3e-6} for n in range(16, 1600, 16)
    }
    made = summarised(PIECES, [box(times)])
    assert len(made["rows"]) == 30 and made["agree_within_10_percent"] < 1
