"""The cause of what the adviser misses, on made-up machines whose cause is known."""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from analysis.site.facts.study_facts import StudyFacts
from analysis.study import Case, Variant
from analysis.study.claims.comparison import Bounded
from kernels.transfers.adviser_limits import (
    HOSTS,
    NOISE,
    NOT_JUDGED,
    REST,
    TOO_FEW,
    WANTED,
    gap,
    limit,
)
from kernels.transfers.ceilings import (
    FAR,
    JUDGED,
    OTHER_HOSTS,
    OTHER_ROUNDS,
    SMALL_BYTES,
    Score,
    scores,
    small_share,
)
from kernels.transfers.page_tables import TABLES
from kernels.transfers.trial import draw_jobs, pinned_ways
from tests.kernels.transfers.test_widgets import TRANSFERS, plausible
from tests.roots import make_inputs
from tests.synthetic import Seconds, add_run, provenance_of, samples_of, write_machine

RUNS = [f"2026-11-2{day}T06:00:00Z" for day in range(1, 6)]
WAYS = ("pinned_list_batch", "pinned_list_gather", "pinned_list_gather_8")


def differing(run: str, spread: float) -> Seconds:
    """Equally fast ways, each slower or faster by up to `spread` in a run, by chance."""

    def seconds(variant: Variant, case: Case, metric: str) -> float:
        draw = zlib.crc32(f"{run}{variant.name}{case.id}".encode()) / 2**32
        return plausible(TRANSFERS.variant(WAYS[1]), case, metric) * (1 + spread * (2 * draw - 1))

    return seconds


def distinct(variant: Variant, case: Case, metric: str) -> float:
    """The same on all hosts, the ways 30 % apart."""
    slower = 1.3 ** WAYS.index(variant.name)
    return slower * plausible(TRANSFERS.variant(WAYS[1]), case, metric)


def measure(
    root: Path,
    seconds: Callable[[str], Seconds],
    losses: Sequence[float],
    predicted: float,
    noise: float = 0.005,
    runs: Sequence[str] = RUNS,
) -> Path:
    """The folder of results. Each run is on another host. The adviser of either source was judged
    in the last one."""
    results = root / "results"
    for run in runs:
        write_machine(
            results,
            "box",
            TRANSFERS,
            variants=[TRANSFERS.variant(name) for name in WAYS],
            run=run,
            rounds=3,
            noise=noise,
            seconds=seconds(run),
            grid="default",
        )
    judged = TRANSFERS.variant(JUDGED)
    (like, *_) = samples_of(TRANSFERS, judged, run=runs[-1], rounds=1)
    samples = [
        replace(like, metric=f"{prefix}_{name}", unit="1", value=value, sample=number)
        for prefix in ("advised", "calibrated")
        for name, values in (("loss", losses), ("predicted", [predicted]))
        for number, value in enumerate(values)
    ]
    provenance = provenance_of(TRANSFERS, judged, run=runs[-1])
    add_run(results, "box", TRANSFERS.name, JUDGED, samples, provenance)
    return results


LOSSES = [1.0] * 60 + [1.1] * 30 + [1.4] * 10


def causes(found: Mapping[str, Score], source: str) -> list[str]:
    return [limit(found, source, demand)[-1] for demand in WANTED]


def test_where_hosts_differ_the_hosts_are_the_cause(tmp_path: Path) -> None:
    results = measure(tmp_path, lambda run: differing(run, 0.3), LOSSES, 0.2)
    found = scores(results, TRANSFERS)["box"]
    assert found[OTHER_ROUNDS].near > 0.95 and found[OTHER_ROUNDS].timed > 0.95
    assert found[OTHER_HOSTS].near < 0.7 and found[OTHER_HOSTS].timed < 0.7
    by_results = causes(found, "results")
    assert by_results[0].startswith("Hosts differ") and by_results[2].startswith("Hosts differ")
    by_calibration = causes(found, "calibration")
    assert all(cause.startswith("The model") for cause in by_calibration), "it is of this host"


def test_where_other_times_tell_all_the_model_is_the_cause(tmp_path: Path) -> None:
    found = scores(measure(tmp_path, lambda _: distinct, LOSSES, 0.5), TRANSFERS)["box"]
    assert min(found[OTHER_ROUNDS].timed, found[OTHER_HOSTS].timed) > 0.95
    assert found[OTHER_HOSTS].near == 1 and not found[OTHER_HOSTS].confused
    for source in ("results", "calibration"):
        assert all(cause.startswith("The model") for cause in causes(found, source))


def test_where_a_host_contradicts_itself_noise_is_the_cause(tmp_path: Path) -> None:
    results = measure(tmp_path, lambda _: distinct, [1.0] * 100, 0.6, noise=0.3)
    found = causes(scores(results, TRANSFERS)["box"], "results")
    assert found[0] == "Nothing is missed." and found[2].startswith("Noise")


def test_one_host_is_too_few(tmp_path: Path) -> None:
    results = measure(tmp_path, lambda _: distinct, LOSSES, 0.5, runs=RUNS[:1])
    assert set(causes(scores(results, TRANSFERS)["box"], "results")) == {TOO_FEW}


def test_few_cells_may_be_chance(tmp_path: Path) -> None:
    few = [1.0] * 18 + [1.1] * 2
    found = scores(measure(tmp_path, lambda _: distinct, few, 0.5), TRANSFERS)["box"]
    assert causes(found, "results")[0].startswith("Perhaps chance, with 20 cells.")


def test_page_shows_each_demand_and_source(tmp_path: Path) -> None:
    measure(tmp_path, lambda _: distinct, LOSSES, 0.5, runs=RUNS[:2])
    facts = StudyFacts(make_inputs(tmp_path, {"transfers": TRANSFERS}), TRANSFERS)
    table = TABLES["adviser_limits"](facts)
    assert len(table.rows) == 6 and {len(row) for row in table.rows} == {len(table.columns)}
    assert list(table.rows[0][:5])[-2:] == ["95 %", "60 %"]
    table = TABLES["adviser_evidence"](facts)
    rows = {str(row[1]): row for row in table.rows}
    assert len(rows) == 4 and {len(row) for row in table.rows} == {len(table.columns)}
    judged = rows["the adviser, from results"]
    assert list(judged[2:8]) == ["100", "1", "60 %", "10.0 %", "1.40×", "50 %"]


def test_without_results_a_sentence_says_so(tmp_path: Path) -> None:
    nothing = StudyFacts(make_inputs(tmp_path, {"transfers": TRANSFERS}), TRANSFERS)
    for name in ("adviser_limits", "adviser_evidence"):
        table = TABLES[name](nothing)
        assert not table.rows and table.empty_text == NOT_JUDGED


@pytest.mark.parametrize(
    ("same_host", "other_hosts", "parts"),
    [
        (0.99, 0.97, (0, 0, 0.35)),
        (0.99, 0.7, (0, 0.2, 0.15)),
        (0.75, 0.7, (0.15, 0.05, 0.15)),
        (0.99, 0.4, (0, 0.35, 0)),
        (0.99, None, (0, 0, 0.35)),
    ],
)
def test_parts_add_up_to_what_is_missed(
    same_host: float, other_hosts: float | None, parts: tuple[float, ...]
) -> None:
    found = gap(0.9, 0.55, same_host, other_hosts)
    assert list(found.parts) == [NOISE, HOSTS, REST]
    assert list(found.parts.values()) == pytest.approx(parts)
    assert math.isclose(sum(found.parts.values()), 0.35)


def test_share_of_small_payloads_is_that_of_the_draw() -> None:
    jobs = draw_jobs(7, pinned_ways(TRANSFERS), 300)
    drawn = np.mean([job.payload_bytes < SMALL_BYTES for job in jobs])
    assert small_share() == pytest.approx(drawn, abs=0.08)


def test_demands_are_those_of_the_claims() -> None:
    claims = {claim.id: claim for claim in TRANSFERS.claims}
    near, not_far = claims["adviser_finds_the_fastest"].tests
    (timed,) = claims["adviser_predicts_the_time"].tests
    assert isinstance(near, Bounded) and near.at_least == WANTED["near"]
    assert isinstance(not_far, Bounded) and not_far.at_most == 1 + FAR
    assert isinstance(timed, Bounded) and timed.at_least == WANTED["timed"]
