"""Ratios of two variants: the pairs of variants, the pairing of their samples, repeats, and
confirmation by another run."""

from __future__ import annotations

import random
from dataclasses import replace

import pandas as pd
import pytest

from analysis.results.collect import visits
from analysis.results.tables.ratios import (
    rankings,
    ratios,
    ratios_by_round,
    repeatability,
    repeats,
)
from tests.results.tables.rows import OLD, OTHER_CASE, RUNS, Row, only, rounds, row, table
from tests.synthetic import CALLS, COPY, STUDIES


def compared(*rows: list[Row]) -> pd.DataFrame:
    return ratios(ratios_by_round(table(*rows), STUDIES))


def test_step_is_compared_with_the_previous_one_references_and_ceilings() -> None:
    pairs = [(variant.name, other.name) for variant, other in COPY.comparisons()]
    others = {variant.name for variant in COPY.with_role("reference", "ceiling")}
    assert {other for name, other in pairs if name == "in_flight"} == {"warps", *others}
    assert {other for name, other in pairs if name == "bytewise"} == others
    assert {pair for pair in pairs if pair[0] in others} == {("batched", "library")}
    assert len(set(pairs)) == len(pairs)
    # A repeat is compared, but nothing is compared with it.
    references = replace(
        CALLS,
        variants=tuple(
            replace(v, role="reference") if v.name == "again" else v for v in CALLS.variants
        ),
    )
    pairs = [(variant.name, other.name) for variant, other in references.comparisons()]
    assert ("again", "python") in pairs and "again" not in {other for _, other in pairs}


def test_step_is_compared_with_all_previous_ones_in_its_shown_case() -> None:
    further = {(step.name, other.name) for step, other in rankings(COPY)}
    assert ("in_flight", "bytewise") in further
    assert ("in_flight", "warps") not in further and ("warps", "in_flight") not in further
    times = {"bytewise": 4.0, "warps": 2.0, "in_flight": 1.0}
    other = next(case.id for case in COPY.variant("warps").cases if case.id != COPY.headline)
    found = compared(
        *(
            rounds(variant, [seconds] * 3, case=case)
            for variant, seconds in times.items()
            for case in (COPY.headline, other)
        )
    )
    found = found[(found["variant"] == "in_flight") & (found["against"] == "bytewise")]
    assert (list(found["case"]), list(found["ratio"])) == ([COPY.headline], [4.0])


def test_a_ratio_is_a_speed_up_paired_by_round() -> None:
    # The second round is slow for both: paired, the ratio is 2 in every round. The last is not.
    found = only(
        compared(rounds("bytewise", [2.0, 20.0, 2.2, 900.0]), rounds("vectors", [1.0, 10.0, 1.1]))
    )
    assert (found["variant"], found["against"]) == ("vectors", "bytewise")
    assert tuple(found[["ratio", "ci_low", "ci_high"]]) == pytest.approx((2.0, 2.0, 2.0))
    assert (found["verdict"], found["runs"], found["hosts"]) == ("faster", 1, 1)


def test_within_a_round_a_ratio_is_paired_by_visit() -> None:
    # A slow period includes three of one variant's eight visits and five of the other's. Their
    # medians would belong to different periods. A visit counts by the median of its samples.
    case = "calls=1000"
    (visited,) = (one for one in CALLS.variant("compiled").cases if one.id == case)
    assert visited.visits == 8
    compiled, python = [1.0] * 5 + [10.0] * 3, [2.0] * 3 + [20.0] * 5
    samples = [
        row(name, factor * value, study="calls", case=case, metric="host_time", sample=number)
        for name, values in (("compiled", compiled), ("python", python))
        for number, (value, factor) in enumerate((v, f) for v in values for f in (1.0, 0.5, 90.0))
    ]
    found = only(compared(samples))
    assert (found["variant"], found["against"]) == ("compiled", "python")
    assert found["ratio"] == pytest.approx(2.0)
    taken = visits(table(samples[:24], rounds("bytewise", [1.0, 1.0])), STUDIES).tolist()
    assert taken == [visit for visit in range(8) for _ in range(3)] + [0, 0]


@pytest.mark.parametrize(
    "change",
    [
        {"run": OLD},
        {"machine": "other"},
        {"case": OTHER_CASE},
        {"metric": "submit_time"},
        {"metric": "sms_used", "unit": "1"},
        {"stale": True},
        {"round": 5},
        {"status": "failed", "reason": "byte 0", "value": None},
    ],
)
def test_ratios_never_mix_runs_machines_cases_and_codes(change: Row) -> None:
    alike = {key: value for key, value in change.items() if key in ("metric", "unit")}
    samples = [row("bytewise", 2.0, **alike)], [row("vectors", 1.0) | change]
    assert compared(*samples).empty


def test_ratio_is_based_on_all_runs_with_both() -> None:
    def of_runs(*times: float) -> pd.Series:
        both = (
            rounds(variant, [time, time], run=run, host=run[:9])
            for run, other in zip(RUNS, times, strict=False)
            for variant, time in (("bytewise", other), ("vectors", 1.0))
        )
        alone = rounds("bytewise", [90.0], run=RUNS[3])
        return only(compared(*both, alone))

    found = of_runs(2.0, 2.1, 2.2)
    assert (found["ratio"], found["runs"], found["hosts"]) == (pytest.approx(2.1), 3, 1)
    assert found["by_run"] == "2|2.1|2.2"
    assert found["ci_low"] < 2.0 and found["ci_high"] > 2.2 and found["verdict"] == "faster"
    wide = of_runs(1.2, 1.5, 1.35)  # the runs decide, however wide the prediction of the next is
    assert wide["ci_low"] < 1 and wide["verdict"] == "faster"


def test_variants_with_work_on_the_cpu_are_compared_by_host_time() -> None:
    found = compared(
        *(
            rounds(variant, [time, time], metric=metric)
            for variant, time in (("bytewise", 1.0), ("batched", 4.0))
            for metric in ("gpu_time", "host_time")
        ),
        rounds("ceiling_kernel", [1.0, 1.0]),
    )
    metrics = found.groupby("against")["metric"].agg(set)
    assert metrics["batched"] == {"host_time"} and metrics["ceiling_kernel"] == {"gpu_time"}


def repeated(run_factors: dict[str, float]) -> pd.DataFrame:
    """The table of repeats of runs that are slower by these factors."""
    samples = table(
        *(
            [
                row(name, value * factor, study="calls", case=CALLS.headline, run=run, round=n)
                for n in range(3)
                for value in (3.0, 4.0, 90.0)
            ]
            for run, factor in run_factors.items()
            for name in ("python", "again", "compiled")
        )
    )
    return repeats(samples, ratios_by_round(samples, STUDIES), STUDIES)


def test_a_run_that_differs_is_called_different_between_runs_only() -> None:
    found = repeated(dict.fromkeys(RUNS, 1.0) | {RUNS[2]: 1.5})
    assert set(zip(found["variant"], found["against"], strict=True)) == {("again", "python")}
    assert list(found["run"]) == RUNS and set(found["verdict"]) == {"same"}
    assert list(found["between_ratio"]) == pytest.approx([1, 1, 1 / 1.5, 1])
    verdicts = dict(zip(found["run"], found["between_verdict"], strict=True))
    assert verdicts[RUNS[2]] == "slower" and verdicts[RUNS[0]] == "unclear"
    few = repeated(dict.fromkeys(RUNS[:3], 1.0))
    assert set(few["between_verdict"]) == {""} and few["between_ratio"].isna().all()


def of_four_runs(**last: float) -> list[Row]:
    """Two steps and a repeat in runs that differ like hosts, the last by these factors, too."""
    source = random.Random(0)
    samples: list[Row] = []
    for run in RUNS:
        host = source.lognormvariate(0, 0.02)
        for name, time in {"bytewise": 3.0, "vectors": 1.0, "python": 1.0, "again": 1.0}.items():
            study = COPY if name in COPY.variant_names else CALLS
            time *= host * source.lognormvariate(0, 0.001)
            time *= last.get(name, 1.0) if run == RUNS[3] else 1.0
            times = [time * factor for factor in (0.999, 1.0, 1.001)]
            samples += rounds(name, times, run=run, study=study.name, case=study.headline)
    return samples


def test_each_run_is_held_against_the_others() -> None:
    samples = table(of_four_runs())

    def of(rows: pd.DataFrame) -> pd.DataFrame:
        return repeatability(rows, ratios_by_round(rows, STUDIES), STUDIES).set_index("study")

    found = of(samples)
    assert tuple(found.loc["copy", ["runs", "times", "times_inside"]]) == (4, 8, 8)
    assert tuple(found.loc["copy", ["ratios", "decided", "contradicted"]]) == (4, 4, 0)
    assert tuple(found.loc["calls", ["repeats", "repeats_different"]]) == (1, 0)
    assert float(found["half_width"].max()) < 0.2
    assert of(samples[samples["run"] != RUNS[0]]).empty  # three runs, none is enough
    assert of(samples.assign(stale=samples["run"] == RUNS[0])).empty


def test_a_time_of_0_has_no_relative_width() -> None:
    never = table(*(rounds("bytewise", [0.0, 0.0], run=run) for run in RUNS))
    (row,) = repeatability(never, ratios_by_round(never, STUDIES), STUDIES).to_dict("records")
    assert row["times_inside"] == 4 and pd.isna(row["half_width"])


def test_a_run_unlike_the_others_is_seen() -> None:
    samples = table(of_four_runs(bytewise=0.1, vectors=3.0, again=3.0, python=3.0))
    found = repeatability(samples, ratios_by_round(samples, STUDIES), STUDIES).set_index("study")
    assert tuple(found.loc["copy", ["times", "times_inside"]]) == (8, 6)
    # The others decide only where the last is left out, and it contradicts them.
    names = ["ratios", "ratios_inside", "decided", "contradicted"]
    assert tuple(found.loc["copy", names]) == (4, 3, 1, 1)
    assert found.loc["calls", "ratios_inside"] == 4  # both are slower by the same factor
