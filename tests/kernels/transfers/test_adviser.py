"""The adviser: its choices on machines whose times are known, its file, and its copy in a page."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from analysis import ROOT
from analysis.base.errors import FieldError, HotpathError
from analysis.base.keys import keys_of
from analysis.results.tables.answers import NEAR
from kernels.transfers.adviser import (
    LAYOUTS,
    METRIC,
    Adviser,
    Job,
    Rule,
    Situation,
    Threshold,
    Way,
    alignment_of,
    certainty,
    make_adviser,
    read_adviser,
)
from kernels.transfers.answers import answers, left_out, nearest_cell
from kernels.transfers.cost import Cost, Timing
from tests.browser import launched, served
from tests.kernels.transfers.machines import FEW_CELLS, WAYS, adviser, gather, grid, jobs, loop
from tests.repository import STUDIES

if TYPE_CHECKING:
    from playwright.sync_api import Page


def losses(known: Adviser, seed: int) -> list[float]:
    """True time of the advised way over that of the fastest, the largest last."""
    found = []
    for job in jobs(seed):
        true = {name: seconds(job.size, job.count) for name, seconds in WAYS.items()}
        found.append(true[known.advise(job)[0].variant] / min(true.values()))
    return sorted(found)


@pytest.mark.parametrize("cells", [grid(), list(FEW_CELLS)], ids=["grid", "calibration"])
def test_the_advised_way_is_nearly_always_the_fastest(cells: list[tuple[int, int]]) -> None:
    found = losses(adviser(cells), seed=8)
    assert found[int(0.95 * len(found))] < 1.05
    assert found[-1] < 1.2


def test_sizes_and_counts_of_the_questions_that_users_ask_have_answers() -> None:
    known = adviser(list(FEW_CELLS))
    for size, count in ((24_576, 4096), (28_672, 256), (65_536, 16), (1, 1), (2**30, 100_000)):
        assert len(known.advise(Job(size, count, device="packed"))) == len(WAYS)


def test_no_way_is_faster_than_the_link() -> None:
    """Small pieces cost the call, not the link, so their times say little of large ones."""
    calls, link = place("pinned_list_batch"), place("pinned_loop")
    cells = [(size, 256) for size in (4096, 16_384, 28_672)]
    pieces = [Timing(size, count, count * 1e-6) for size, count in [*cells, (4096, 16)]]
    rates = [Timing(2**20, 1, 2**20 / 5e10)]
    titles = {one.name: one.title for one in STUDIES["transfers"].variants}
    costs = {(calls, METRIC): pieces, (link, METRIC): rates}
    known = make_adviser("box", "results", costs, titles)
    job = Job(2**20, 256)
    assert all(one.seconds >= 0.999 * 2**28 / 5e10 for one in known.advise(job))
    measured = {one.variant: one.seconds for one in known.advise(Job(4096, 256))}
    assert measured[calls.variant] == pytest.approx(256e-6)


def costs_of(variant: str, *cells: tuple[int, int], per_byte: float = 1e-10) -> Adviser:
    """An adviser that knows a way in these cells, and its link by a large block."""
    titles = {one.name: one.title for one in STUDIES["transfers"].variants}
    timings = [Timing(size, count, 1e-5 + size * count * per_byte) for size, count in cells]
    known = {(place(variant), METRIC): timings}
    known[place("pinned_loop"), METRIC] = [Timing(2**26, 1, 2**26 / 5e10)]
    return make_adviser("box", "results", known, titles)


def test_copies_of_one_block_say_nothing_of_many() -> None:
    """In any memory: a further call has a cost that no block contains."""
    known = costs_of("registered_loop", (1, 1), (65_536, 1), (2**26, 1))
    many = Job(16_384, 4096)
    assert variants(known, many, "any") == set()
    assert known.beyond(many, "any") == ["registered_loop", "pinned_loop"]
    one = Job(2**20, host="packed", device="packed")
    assert variants(known, one, "any") == {"registered_loop", "pinned_loop"}
    assert known.beyond(one, "any") == []


@pytest.mark.parametrize(
    ("size", "count", "is_known"),
    [(4096, 16, False), (4096, 4096, True), (512, 60_000, True), (2**20, 4096, False)],
)
def test_cells_that_do_not_separate_call_and_piece_hold_only_nearby(
    size: int, count: int, is_known: bool
) -> None:
    """Batched calls of parts were measured with thousands of pieces, and begin with a kernel."""
    known = costs_of("pinned_list_loop", (4096, 4096), (512, 16_384))
    assert ("pinned_list_loop" in variants(known, Job(size, count))) == is_known


def test_two_counts_of_one_size_allow_others() -> None:
    known = costs_of("pinned_list_loop", (4096, 64), (4096, 256), (512, 64))
    for job in (Job(4096, 100_000), Job(4096, 4), Job(2**20, 1000)):
        assert "pinned_list_loop" in variants(known, job)
    assert "pinned_list_loop" not in variants(known, Job(4096, 3))


def test_no_way_is_faster_than_itself_with_larger_pieces() -> None:
    """Nor beyond its largest cells, though the link could."""
    rate = 4.6e10
    known = costs_of(
        "pinned_list_bulk", *((s, n) for s in (512, 2**17) for n in (16, 128)), per_byte=1 / rate
    )
    for size, count in ((2048, 1024), (2048, 8192), (2**17, 4096)):
        (found,) = (
            one for one in known.advise(Job(size, count)) if one.variant == "pinned_list_bulk"
        )
        assert found.seconds >= 0.999 * size * count / rate


def test_a_measured_cell_is_marked() -> None:
    known = adviser(grid())
    assert known.advise(Job(4096, 256))[0].is_measured
    assert not known.advise(Job(4096, 257))[0].is_measured
    assert not known.advise(Job(4096, 256, is_busy=True))[0].is_measured


def place(variant: str, **changes: Any) -> Situation:
    at = {"direction": "h2d", "host": "pitched", "device": "packed", "is_busy": False}
    return Situation(variant, **{**at, "alignment": 1, **changes})


def known_at(*places: Situation, seconds: float = 1e-5) -> Adviser:
    cells = [Timing(4096, 16, seconds), Timing(4096, 256, 16 * seconds)]
    timings = {(at, "host_time"): cells for at in places}
    titles = {at.variant: "A way" for at in places}
    return make_adviser("box", "results", timings, titles)


def variants(known: Adviser, job: Job, memory: str = "pinned") -> set[str]:
    return {one.variant for one in known.advise(job, memory)}


@pytest.mark.parametrize("method", ["2d", "gather", "bulk"])
def test_scattered_pieces_are_no_rows(method: str) -> None:
    known = known_at(place(f"pinned_{method}"), place("pinned_loop"))
    for host in LAYOUTS:
        for device in LAYOUTS:
            found = variants(known, Job(4096, 16, host=host, device=device))
            assert (f"pinned_{method}" in found) == ("scattered" not in (host, device))
            assert "pinned_loop" in found


@pytest.mark.parametrize("method", ["packed", "list_packed_1"])
def test_a_packed_copy_needs_packed_pieces_on_the_device(method: str) -> None:
    known = known_at(place(f"pinned_{method}"), place("pinned_loop"))
    for device in LAYOUTS:
        found = variants(known, Job(4096, 16, device=device))
        assert (f"pinned_{method}" in found) == (device == "packed")


def test_the_alignment_decides_about_kernels() -> None:
    """Vectors hardly depend on cache lines, bulk copies do, and single bytes are not measured."""
    kernels = [place(f"pinned_{name}", alignment=128) for name in ("gather", "list_bulk")]
    known = known_at(*kernels, place("pinned_loop"))
    rows = Job(4096, 16, host="pitched", device="packed")
    assert variants(known, rows) == {"pinned_gather", "pinned_list_bulk", "pinned_loop"}
    assert variants(known, replace(rows, alignment=16)) == {"pinned_gather", "pinned_loop"}
    assert variants(known, replace(rows, alignment=8)) == {"pinned_loop"}
    by_lines, by_vectors = (
        next(one for one in known.advise(job) if one.variant == "pinned_gather")
        for job in (rows, replace(rows, alignment=16))
    )
    assert by_lines.is_measured and not by_vectors.is_measured


@pytest.mark.parametrize(
    ("size", "alignment"), [(4096, 128), (64, 128), (2096, 16), (96, 16), (8, 1), (1000, 1)]
)
def test_without_an_alignment_the_size_has_it(size: int, alignment: int) -> None:
    assert Job(size).alignment == alignment_of(size) == alignment


def test_memory_and_direction_are_observed() -> None:
    known = known_at(
        place("pinned_loop"), place("pageable_loop"), place("pinned_2d", direction="d2h")
    )
    rows = Job(4096, 16, host="pitched", device="packed")
    assert variants(known, rows) == {"pinned_loop"}
    assert variants(known, rows, "any") == {"pinned_loop", "pageable_loop"}
    assert variants(known, replace(rows, direction="d2h")) == {"pinned_2d"}


def test_packed_pieces_are_one_piece() -> None:
    known = adviser(grid())
    one = known.advise(Job(4096 * 256, 1))
    assert known.advise(Job(4096, 256, host="packed", device="packed")) == one
    assert one[0].seconds < known.advise(Job(4096, 256))[0].seconds


def test_the_state_of_the_stream_decides() -> None:
    idle, busy = place("pinned_batch"), place("pinned_batch", is_busy=True)
    timings = {(idle, "host_time"): [Timing(4096, 16, 1e-3)]}
    timings[busy, "host_time"] = [Timing(4096, 16, 1e-4)]
    known = make_adviser("box", "results", timings, {"pinned_batch": "A way"})
    rows = Job(4096, 16, host="pitched", device="packed")
    assert known.advise(rows)[0].seconds == pytest.approx(1e-3, rel=1e-3)
    assert known.advise(replace(rows, is_busy=True))[0].seconds == pytest.approx(1e-4, rel=1e-3)


def test_another_layout_is_a_guess() -> None:
    known = known_at(place("pinned_loop"))
    there = known.advise(Job(4096, 16, host="pitched", device="packed"))[0]
    elsewhere = known.advise(Job(4096, 16))[0]
    assert there.is_measured and not elsewhere.is_measured
    assert elsewhere.error > there.error


def test_certainty_is_a_probability() -> None:
    best, *_, worst = adviser(grid()).advise(Job(512, 4096))
    assert certainty(best, worst) > 0.99
    assert certainty(best, best) == pytest.approx(0.5)


def test_thresholds_change_with_the_count() -> None:
    ways = {"pinned_loop": loop, "pinned_kernel": lambda size, count: 4e-5 + gather(size, count)}
    known = adviser(grid(), noise=0.0, ways=ways)
    (small,) = [at for at in known.thresholds if at.size_from == 512]
    assert [rule.variant for rule in small.rules] == ["pinned_loop", "pinned_kernel"]
    assert small.rules[0].count_from == 1


def test_the_file_is_read_back(tmp_path: Path) -> None:
    known = adviser(grid())
    known.write(tmp_path / "adviser.json")
    assert read_adviser(tmp_path / "adviser.json") == known


def _set(path: list[Any], value: object, document: Any) -> Any:
    *parents, last = path
    inner = document
    for part in parents:
        inner = inner[part]
    inner[last] = value
    return document


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (["version"], 2, "version: expected a number of at most 1, got 2"),
        (["source"], "hearsay", "source: expected one of"),
        (
            ["ways", 0, "costs", "host_time", "latency_s"],
            -1.0,
            "latency_s: expected a number of at",
        ),
        (["ways", 0, "host"], "tidy", "host: expected one of"),
        (["more"], 1, "expected one of the keys"),
    ],
)
def test_a_wrong_file_is_one_clear_error(
    path: list[Any], value: object, message: str, tmp_path: Path
) -> None:
    file = tmp_path / "adviser.json"
    adviser(list(FEW_CELLS)).write(file)
    file.write_text(json.dumps(_set(path, value, json.loads(file.read_text()))))
    with pytest.raises(FieldError, match=message):
        read_adviser(file)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"size": 0}, "size: expected a whole number of at least 1, got 0"),
        ({"count": -3}, "count: expected a whole number of at least 1, got -3"),
        ({"direction": "up"}, "direction: expected one of .*, got 'up'"),
        ({"host": "tidy"}, "host: expected one of .*, got 'tidy'"),
        ({"device": ""}, "device: expected one of .*, got ''"),
        ({"alignment": 12}, "alignment: expected a power of two, got 12"),
    ],
)
def test_a_wrong_job_is_one_clear_error(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(FieldError, match=message):
        Job(**{"size": 1, **changes})


def test_no_times_are_an_error() -> None:
    with pytest.raises(HotpathError, match="box: no times"):
        make_adviser("box", "results", {}, {})


def test_the_contract_names_every_key_of_the_file() -> None:
    contract = (ROOT / "docs" / "contract.md").read_text()
    for record in (Adviser, Way, Cost, Threshold, Rule):
        for name in keys_of(record):
            assert re.search(rf"`(\w+\[\]\.)?{name}`", contract), name


@pytest.fixture(scope="module")
def script() -> Iterator[Page]:
    """A page with the functions of the adviser's scripts as globals."""
    with served(STUDIES["transfers"].folder) as address, launched() as browser:
        page = browser.new_page()
        page.goto(f"{address}adviser.js")
        for name in ("advice.js", "adviser.js"):
            page.evaluate(
                "async (from) => { Object.assign(globalThis, await import(from)); }",
                f"{address}{name}",
            )
        yield page


@pytest.mark.heavy
def test_the_script_computes_the_same(script: Page, tmp_path: Path) -> None:
    known = adviser(grid())
    at = place("pinned_batch", host="scattered", device="scattered", is_busy=True)
    far = costs_of("pinned_list_loop", (4096, 4096), (512, 16_384))
    rates = costs_of("pinned_list_bulk", (512, 16), (512, 128), (2**17, 16), (2**17, 128))
    more = (*known_at(at, place("pinned_2d")).ways, *far.ways, *rates.ways)
    known = replace(known, ways=(*known.ways, *more))
    known.write(tmp_path / "adviser.json")
    asked = [
        replace(job, is_busy=bool(i % 2), host=LAYOUTS[i % 3], device=LAYOUTS[i // 3 % 3])
        for i, job in enumerate([*jobs(3, 200), Job(4096, 256), Job(24_576, 1), Job(2**30, 3)])
    ]
    expected = [
        [
            [one.variant, one.seconds, one.low, one.error, one.is_measured]
            for one in known.advise(job)
        ]
        for job in asked
    ]
    exported = {**json.loads((tmp_path / "adviser.json").read_text()), "near": NEAR}
    found = script.evaluate(
        "([known, jobs]) => jobs.map((job) => advise(known, job).map("
        "(one) => [one.variant, one.seconds, one.low, one.error, one.isMeasured]))",
        [exported, [vars(job) for job in asked]],
    )
    for ours, theirs in zip(expected, found, strict=True):
        assert [one[0] for one in ours] == [one[0] for one in theirs]
        for one, other in zip(ours, theirs, strict=True):
            assert one[1:] == pytest.approx(other[1:], rel=1e-9)
    answered = script.evaluate(
        "([known, jobs]) => jobs.map((job) => answers(known, job).map((one) => one.variant))",
        [exported, [vars(job) for job in asked]],
    )
    assert answered == [[one.variant for one in answers(known, job)] for job in asked]
    far = script.evaluate(
        "([known, jobs]) => jobs.map((job) => leftOut(known, job))",
        [exported, [vars(job) for job in asked]],
    )
    assert far == [left_out(known, job) for job in asked] and any(far)
    cells = script.evaluate(
        "([known, jobs]) => jobs.map((job) => nearestCell(known, job)).map("
        "(one) => one && [one.variant, one.size, one.count])",
        [exported, [vars(job) for job in asked]],
    )
    for job, cell in zip(asked, cells, strict=True):
        nearest = nearest_cell(known, job)
        assert cell == (nearest and [nearest.variant, nearest.size, nearest.count])


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("4096", 4096),
        ("24 KiB", 24_576),
        ("1GiB", 2**30),
        ("64", 64),
        ("2096", 2096),
        ("7", 7),
        ("4KB", None),
        ("0", None),
    ],
)
def test_the_script_reads_sizes(script: Page, text: str, size: int | None) -> None:
    assert script.evaluate("(text) => parseSize(text)", text) == size
    if size:
        assert script.evaluate("(size) => alignmentOf(size)", size) == alignment_of(size)
