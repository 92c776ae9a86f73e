"""Tables of the page, from made-up cells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median

import pytest

from analysis.base.quantities import whole
from analysis.results.tables.rows import runs_text
from analysis.site.facts.study_facts import StudyFacts
from kernels.hot_set.graph_table import STEPS, added_times
from kernels.hot_set.page_tables import NOT_MEASURED, TABLES, blocks, choice, hit_rates, policies
from kernels.hot_set.share_table import SHARING, WITHIN, repeated_shares, shares
from tests.kernels.hot_set.measured import (
    BLOCK,
    GIVEN,
    STUDY,
    TWO_KERNELS,
    facts_of,
    simulated,
    timed,
    usual_case,
)


def way(facts: StudyFacts, name: str) -> str:
    """A variant in words, with its name as the link to its step."""
    return f'{facts.study.variant(name).title} (<a href="#{name}"><code>{name}</code></a>)'


def test_the_simpler_of_two_equally_fast_steps_is_taken(tmp_path: Path) -> None:
    times = {
        (TWO_KERNELS, 1, 410): 20.5e-6,
        (BLOCK, 1, 410): 20e-6,
        (TWO_KERNELS, 10, 4100): 200e-6,
        (BLOCK, 10, 4100): 100e-6,
    }
    graph = usual_case(1, 410, layers=60)
    rows = [
        *timed(times),
        (TWO_KERNELS, graph, "host_time", 9e-4),
        (BLOCK, graph, "host_time", 1e-3),
    ]
    facts = facts_of(tmp_path, rows)
    table = choice(facts)
    assert [row[1:] for row in table.rows] == [
        [
            "1",
            "410",
            "40 GiB",
            way(facts, TWO_KERNELS),
            "20.50 µs",
            "0.976×",
            "1.230 ms",
            f"900.0 µs: {way(facts, TWO_KERNELS)}",
        ],
        ["10", whole(4100), "40 GiB", way(facts, BLOCK), "100.0 µs", "1.000×", "6.000 ms", ""],
    ]
    assert len(table.columns) == len(table.rows[0])


@pytest.mark.parametrize(
    ("all_rows", "expected"),
    [
        (15e-6, "at no measured hit rate, up to 99.9 %"),
        (60e-6, "above 50.0 %"),
        (
            120e-6,
            "at every measured hit rate, down to 0.0 % (One kernel, a block per request)",
        ),
    ],
)
def test_a_hot_set_pays_from_the_hit_rate_at_which_it_takes_less(
    all_rows: float, expected: str, tmp_path: Path
) -> None:
    # 20 µs without misses, and 40 µs for each 1,024 of them.
    times = {(BLOCK, 1, misses): 20e-6 + misses / 1024 * 40e-6 for misses in (2, 410, 2048)}
    rows = timed({**times, (GIVEN, 1, 2048): all_rows, (GIVEN, 1, 410): 1e-6})
    table = hit_rates(facts_of(tmp_path, rows))
    (row,) = table.rows
    assert row[1:3] == ["1", "40 GiB"]
    assert row[-1] == expected


def test_blocks_are_compared_with_scattered_rows_of_the_same_variant(tmp_path: Path) -> None:
    rows = [
        (BLOCK, usual_case(1, 2048), "host_time", 100e-6),
        (BLOCK, usual_case(1, 2048, layout="pages_64"), "host_time", 50e-6),
        (BLOCK, usual_case(1, 2048, pool_mib=188, layout="pages_64"), "host_time", 40e-6),
        (GIVEN, usual_case(1, 2048, layout="pages_64"), "host_time", 40e-6),
    ]
    facts = facts_of(tmp_path, rows)
    table = blocks(facts)
    assert [row[1:] for row in table.rows] == [
        ["1", whole(2048), "40 GiB", "pages_64", way(facts, BLOCK), "50.00 µs", "2.00×"]
    ]


def test_the_time_of_a_policy_follows_from_its_bytes(tmp_path: Path) -> None:
    fetched = {"lru": 164e3, "clock": 180.4e3, "random": 196.8e3, "belady": 82e3}
    times = {(BLOCK, 1, 410): 20e-6, (BLOCK, 1, 2048): 20e-6 + 1638 * 10e-9}
    facts = facts_of(tmp_path, [*simulated("kept_0.9", fetched), *timed(times)])
    (row,) = policies(facts).rows
    assert row[1:] == ["kept_0.9", whole(4096), "82.0 kB", "2.00×", "2.20×", "2.40×", "1.250 µs"]
    without_times = facts_of(tmp_path, simulated("kept_0.9", fetched))
    assert policies(without_times).rows[0][-1] == ""


@pytest.mark.parametrize("name", sorted(TABLES))
def test_a_table_without_cells_is_a_sentence(name: str, tmp_path: Path) -> None:
    facts = facts_of(tmp_path, simulated("kept_0.9", {"lru": 1.0}))
    made = TABLES[name](facts)
    assert not made.rows
    assert made.empty_text == NOT_MEASURED or made.empty_text.startswith("No machine has ")


def test_a_chosen_share_is_compared_with_the_best_given_one(tmp_path: Path) -> None:
    chosen, other = usual_case(1, 2048), usual_case(1, 410)
    times = {chosen: 42e-6, f"{chosen},share_32nds=0": 50e-6, f"{chosen},share_32nds=8": 40e-6}
    rows = [(SHARING, case, "host_time", each) for case, each in (times | {other: 9e-6}).items()]
    table = shares(facts_of(tmp_path, rows))
    expected = [["1", whole(2048), "40 GiB", "8/32", "40.00 µs", "42.00 µs", "1.050×"]]
    assert [row[1:] for row in table.rows] == expected
    assert len(table.columns) == len(table.rows[0])


def runs_of_shares(folder: Path, by_share: Mapping[int | None, Sequence[float]]) -> StudyFacts:
    """A machine that has measured one case in several runs, by given share."""
    case = usual_case(1, 2048)
    names = {s: case if s is None else f"{case},share_32nds={s}" for s in by_share}
    rows = [(SHARING, names[s], "host_time", median(runs)) for s, runs in by_share.items()]
    texts = [runs_text(runs) for runs in by_share.values()]
    return facts_of(folder, rows, by_run=texts)


def test_a_control_repeats_the_best_share_of_the_other_runs(tmp_path: Path) -> None:
    # The best share of run 1 is 0, that of the others 8, so the control fails in one run of three.
    by_share = {None: (40e-6, 42e-6, 60e-6), 0: (38e-6, 50e-6, 50e-6), 8: (41e-6, 40e-6, 40e-6)}
    (row,) = repeated_shares(runs_of_shares(tmp_path, by_share)).rows
    assert row[1:] == ["3", "33 %", "1.053×", "67 %", "1.000×"]


@pytest.mark.parametrize(
    "by_share", [{None: (40e-6,), 8: (40e-6,)}, {0: (1e-6, 1e-6)}, {None: (1e-6, 1e-6)}]
)
def test_one_run_or_one_side_gives_no_control(
    tmp_path: Path, by_share: dict[int | None, tuple[float, ...]]
) -> None:
    assert not repeated_shares(runs_of_shares(tmp_path, by_share)).rows


def test_steps_of_a_graph_are_held_against_their_misses_alone(tmp_path: Path) -> None:
    graph = usual_case(1, 2, layers=60)
    times = {GIVEN: 240e-6, **dict(zip(STEPS, (1200e-6, 780e-6, 312e-6), strict=True))}
    rows = [(name, graph, "gpu_time", seconds) for name, seconds in times.items()]
    rows += [(GIVEN, usual_case(1, 410, layers=60), "gpu_time", 1e-3)]  # no step to compare
    (row,) = added_times(facts_of(tmp_path, rows)).rows
    assert row[1:] == ["2", "40 GiB", "4.000 µs", "16.00 µs", "9.000 µs", "1.200 µs", "1.30×"]


def test_a_hit_of_the_table_is_one_of_the_claim() -> None:
    (test,) = next(one for one in STUDY.claims if one.id == "model_chooses_the_share").tests
    assert getattr(test, "slower", None) == pytest.approx(1 + WITHIN)
