"""Tables computed a second time from the files of runs: without pandas, and without the functions
that the tables use. Made-up results have everything that results can have."""

from __future__ import annotations

import csv
import json
import math
import random
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from io import StringIO
from pathlib import Path
from statistics import fmean, median, quantiles, stdev
from typing import Any, TypeAlias

import pytest
from scipy import stats

from analysis import ROOT
from analysis.results.store import METHOD_VERSION
from analysis.results.tables.of_study import study_tables
from analysis.study import Study, Variant
from analysis.study.source import fingerprint
from tests import repository
from tests.synthetic import CALLS, COPY, Sample, provenance_of, samples_of, write_run

TIME_METRICS = ("gpu_time", "host_time", "op_time")
Row: TypeAlias = "dict[str, Any]"
Runs: TypeAlias = "dict[str, list[float]]"
Table: TypeAlias = "dict[tuple[str, ...], Row]"


Cells: TypeAlias = "dict[tuple[str, str, str], list[Row]]"
"""Rows of the files of samples by machine, variant and case, oldest first."""


def read(results: Path, study: Study) -> Cells:
    cells: Cells = defaultdict(list)
    codes = {variant.name: fingerprint(study, variant) for variant in study.variants}
    for path in sorted(results.glob(f"*/{study.name}/*-????????.json"), key=lambda path: path.name):
        about = json.loads(path.read_text())
        is_old = about["method_version"] != METHOD_VERSION
        disturbed = {str(one["round"]) for one in about["disturbed"]}
        for row in csv.DictReader(StringIO(path.with_suffix(".csv").read_text())):
            name = row["variant"]
            values = {column: [*map(float, row[column].split())] for column in row if "[" in column}
            cells[path.parts[-3], name, row["case"]].append(
                {
                    **row,
                    "run": about["run"],
                    "host": about["host"]["id"],
                    "is_stale": is_old or about["variants"][name]["source_sha256"] != codes[name],
                    "is_disturbed": row["round"] in disturbed,
                    "values": {column: samples for column, samples in values.items() if samples},
                }
            )
    return cells


def used(rounds: Sequence[Row]) -> list[Row]:
    """Those of today's code or else of the newest run; skipped ones only if no other is left, and
    failed ones alone."""
    fresh = [one for one in rounds if not one["is_stale"]]
    newest = max(one["run"] for one in rounds)
    kept = fresh or [one for one in rounds if one["run"] == newest]
    kept = [one for one in kept if one["status"] != "skipped"] or kept
    return [one for one in kept if one["status"] == "failed"] or kept


def of_visits(values: Sequence[float], visits: int) -> list[float]:
    each = max(len(values) // visits, 1)
    return [median(values[start : start + each]) for start in range(0, len(values), each)]


student = cache(partial(stats.t.ppf, 0.975))


def around_mean(values: Sequence[float], kind: str, spread: float) -> tuple[float, float]:
    """Mean ± t * `spread` * standard deviation, of logarithms unless of shares or with a 0."""
    is_log = kind != "share" and min(values) > 0
    scaled = [math.log(one) for one in values] if is_log else values
    deviation = math.hypot(stdev(scaled), 0.01 if is_log and kind == "time" and spread > 1 else 0)
    reach = student(len(values) - 1) * spread * deviation
    low, high = fmean(scaled) - reach, fmean(scaled) + reach
    if is_log:
        return math.exp(low), math.exp(high)
    return max(low, 0.0), min(high, 1.0 if kind == "share" else math.inf)


def prediction(medians: Sequence[float], kind: str) -> tuple[float, float]:
    return around_mean(medians, kind, math.sqrt(1 + 1 / len(medians)))


def of_rounds(rounds: Sequence[float], kind: str) -> tuple[float, float]:
    """The interval of the median of a run's rounds, by their order."""
    count, ordered = len(rounds), sorted(rounds)
    if count < 2:
        return math.nan, math.nan
    if count >= 6:
        below = stats.binom(count, 0.5).cdf
        drop = max(k for k in range(count) if k == 0 or below(k - 1) <= 0.025)
        return ordered[drop], ordered[-1 - drop]
    low, high = ordered[0], ordered[-1]
    mean_low, mean_high = around_mean(ordered, kind, 1 / math.sqrt(count))
    return min(low, mean_low), max(high, mean_high)


def figure(runs: Runs, kind: str) -> Row:
    medians = [median(rounds) for rounds in runs.values()]
    low = high = math.nan
    if len(runs) >= 3:
        low, high = prediction(medians, kind)
    elif ends := [end for one in runs.values() for end in of_rounds(one, kind) if end == end]:
        ends += [one[0] for one in runs.values() if len(one) == 1]
        low, high = min(ends), max(ends)
    return {
        "median": median(medians),
        "ci_low": low,
        "ci_high": high,
        "by_run": "|".join(f"{one:.7g}" for one in medians),
        "apart": sum(are_outside(medians, kind)),
    }


def are_outside(medians: Sequence[float], kind: str) -> list[bool]:
    """Whether each run lies outside of the prediction by three others or more."""
    if len(medians) < 4:
        return [False for _ in medians]
    ends = [prediction([*medians[:n], *medians[n + 1 :]], kind) for n in range(len(medians))]
    return [
        not low * (1 - 1e-9) <= one <= high * (1 + 1e-9)
        for one, (low, high) in zip(medians, ends, strict=True)
    ]


def verdict(ratio: float, low: float, high: float, medians: Sequence[float]) -> str:
    if len(medians) >= 3:
        low, high = around_mean(medians, "count", 1 / math.sqrt(len(medians)))
        low, high = min(low, *medians), max(high, *medians)
    if low >= 0.99 and high <= 1.01:
        return "same"
    if low > 1 and ratio >= 1.01:
        return "faster"
    return "slower" if high < 1 and ratio <= 0.99 else "unclear"


def summary(cells: Cells, study: Study) -> Iterator[tuple[tuple[str, ...], Row]]:
    """The rows of summary.csv by their first five columns."""
    visits = {case.id: case.visits for v in study.variants for case in v.cases}
    for (machine, variant, case), rounds in cells.items():
        kept = [one for one in used(rounds) if one["status"] == "ok"]
        for column in {column for one in kept for column in one["values"]}:
            metric, unit = column[:-1].split(" [")
            these = [one for one in kept if column in one["values"]]
            runs: Runs = defaultdict(list)
            for one in these:
                medians = of_visits(one["values"][column], visits.get(case, 1))
                runs[one["run"]].append(median(medians))
            values = sorted(value for one in these for value in one["values"][column])
            throttled = sum(len(one["values"][column]) for one in these if one["throttle"])
            q1, _, q3 = quantiles(values, n=4, method="inclusive") if values[1:] else values * 3
            known = study.metrics.get(metric)
            kind = "share" if known and known.share else "time" if unit == "s" else "count"
            yield (
                (machine, study.name, variant, case, metric),
                figure(runs, kind)
                | {
                    "unit": unit,
                    "q1": q1,
                    "q3": q3,
                    "n": len(values),
                    "rounds": len(these),
                    "verified": min(int(one["verified"]) for one in these),
                    "throttled": throttled / len(values),
                    "stale": int(these[0]["is_stale"]),
                    "runs": len(runs),
                    "hosts": len({one["host"] for one in these}),
                },
            )


def pairs(study: Study) -> Iterator[tuple[Variant, Variant, str]]:
    """The variants to compare, and the one case in which they are, or none for all."""
    usual = list(study.comparisons())
    yield from ((a, b, "") for a, b in usual)
    steps = [v for v in study.variants if v.role in ("step", "beyond") and not study.is_repeat(v)]
    for n, step in enumerate(steps):
        for other in (other for other in steps[:n] if (step, other) not in usual):
            yield step, other, study.shown_case(step).id


def ratios(cells: Cells, study: Study) -> Iterator[tuple[tuple[str, ...], Row, Runs]]:
    for of, over, only in pairs(study):
        for (machine, name, case), rounds in cells.items():
            if name != of.name or (only and case != only):
                continue
            others = {
                (one["run"], one["round"]): one
                for one in used(cells.get((machine, over.name, case), rounds[:1]))
                if (machine, over.name, case) in cells
            }
            visits = next((c.visits for c in of.cases if c.id == case), 1)
            for metric in TIME_METRICS[of.host_work or over.host_work :]:
                runs: Runs = defaultdict(list)
                hosts = set()
                for one in used(rounds):
                    other = others.get((one["run"], one["round"]))
                    if other is None or one["is_stale"] or other["is_stale"]:
                        continue
                    times = [r["values"].get(f"{metric} [s]", []) for r in (one, other)]
                    both = [of_visits(values, visits) for values in times]
                    if not all(both):
                        continue
                    runs[one["run"]].append(median(b / a for a, b in zip(*both, strict=True)))
                    hosts.add(one["host"])
                if runs:
                    found = figure(runs, "time")
                    ends = (found.pop("median"), found["ci_low"], found["ci_high"])
                    said = verdict(*ends, [median(of_run) for of_run in runs.values()])
                    row = {"ratio": ends[0], "verdict": said, "runs": len(runs)}
                    key = (machine, study.name, of.name, over.name, case, metric)
                    yield key, found | row | {"hosts": len(hosts)}, runs


def repeatability(cells: Cells, study: Study) -> Iterator[tuple[tuple[str, ...], Row]]:
    """How often a run lies inside of what the others predict, and contradicts what they decide."""
    compared = list(ratios(cells, study))
    for machine in sorted({machine for machine, *_ in cells}):
        by_run = [
            [float(one) for one in row["by_run"].split("|")]
            for key, row in summary(cells, study)
            if key[0] == machine and row["unit"] == "s" and not row["stale"]
        ]
        many = [runs for key, _, runs in compared if key[0] == machine and len(runs) >= 4]
        outside = [one for runs in by_run if len(runs) >= 4 for one in are_outside(runs, "time")]
        decided = contradicted = 0
        for runs in many:
            medians = [median(rounds) for rounds in runs.values()]
            for n, rounds in enumerate(runs.values()):
                others = [*medians[:n], *medians[n + 1 :]]
                by_others = verdict(median(others), math.nan, math.nan, others)
                alone = verdict(median(rounds), *of_rounds(rounds, "time"), [])
                decided += by_others in ("faster", "slower")
                contradicted += {by_others, alone} == {"faster", "slower"}
        apart = [
            one
            for runs in many
            for one in are_outside([median(rounds) for rounds in runs.values()], "time")
        ]
        counts = {"times": len(outside), "times_inside": outside.count(False)}
        counts |= {"ratios": len(apart), "ratios_inside": apart.count(False)}
        yield (machine, study.name), counts | {"decided": decided, "contradicted": contradicted}


def made_up(results: Path, study: Study) -> None:
    """Six runs on four hosts of one machine and two of another, with all that a cell can have."""
    draw = random.Random(study.name)
    places = [("box", host) for host in "1122341"] + [("other", "5")] * 2
    for number, (machine, host) in enumerate(places):
        run = f"2026-01-{number + 1:02}T00:00:00Z"
        slow = draw.lognormvariate(0, 0.02)
        every: list[Sample] = []
        variants: dict[str, Row] = {}
        for variant in study.variants:
            about = variants[variant.name] = provenance_of(study, variant, run=run)
            about["machine"] |= {"host": host * 8}
            about["disturbed"] = [{"round": number % 5, "why": ["heat"]}]
            is_gone = (variant.name, machine) == ("looping", "other")
            if is_gone or draw.random() < 0.15:
                about["source_sha256"] = "0" * 64
            samples: list[Sample] = []
            for one in samples_of(study, variant, run=run, rounds=5, noise=0.0):
                visits = next(case.visits for case in variant.cases if case.id == one.case)
                value = (one.value or 0) * slow * draw.lognormvariate(0, 0.004)
                throttle = "sw_power_cap" if draw.random() < 0.1 else ""
                for n in range(3 * visits):
                    lasting = 4.0 if (one.round * visits + n // 3) % 5 == 4 else 1.0
                    now = value * lasting * draw.lognormvariate(0, 0.01)
                    samples.append(replace(one, value=now, sample=n, throttle=throttle))
                if "blocks_used" in study.metrics:
                    blocks = float(number // 3)
                    samples.append(replace(one, metric="blocks_used", unit="1", value=blocks))
            none: Row = {"value": None, "verified": 0}
            first = samples[0]
            match -1 if is_gone else draw.randrange(8):
                case 0:
                    skipped = none | {"status": "skipped", "reason": "no room"}
                    samples = [
                        replace(one, **skipped) for one in samples_of(study, variant, run=run)
                    ]
                case 1 if number == 2:
                    samples = [one for one in samples if (one.case, one.round) != (first.case, 0)]
                    samples.append(replace(first, **none, status="failed", reason="byte 3"))
                case 2:
                    samples = [replace(one, verified=0) for one in samples]
                case 3:
                    samples = [one for one in samples if one.round != 1]
            every += samples
        write_run(results, machine, study.name, every, variants)


def table(texts: Mapping[str, str], name: str, key: int) -> Table:
    rows = list(csv.reader(StringIO(texts[f"{name}.csv"])))
    found = {tuple(row[:key]): dict(zip(rows[0], row, strict=True)) for row in rows[1:]}
    assert len(found) == len(rows) - 1
    return found


def assert_same(got: Table, expected: Table) -> None:
    assert got.keys() == expected.keys()
    for key, row in expected.items():
        for name, value in row.items():
            text = got[key][name]
            if isinstance(value, float):
                number = float(text or "nan")
                assert number == pytest.approx(value, rel=2e-6, abs=1e-15, nan_ok=True), (key, name)
            else:
                assert text == str(value), (key, name)


@pytest.mark.parametrize("name", ["copy", "calls", "idle_stream"])
def test_tables_are_those_of_a_second_computation(tmp_path: Path, name: str) -> None:
    study = {"copy": COPY, "calls": CALLS, **repository.STUDIES}[name]
    results = ROOT / "results"
    if study in (COPY, CALLS):
        made_up(results := tmp_path, study)
    texts = study_tables(results, name, {name: study}, {})
    assert json.loads(texts["refused.json"]) == {}
    cells = read(results, study)
    assert_same(table(texts, "summary", 5), dict(summary(cells, study)))
    found = list(ratios(cells, study))
    assert_same(table(texts, "ratios", 6), {key: row for key, row, _ in found})
    of_machines = table(texts, "repeatability", 2)
    expected = [item for item in repeatability(cells, study) if item[0] in of_machines]
    assert_same(of_machines, dict(expected))
    kept = {key: used(rounds) for key, rounds in cells.items()}
    newest: Table = {
        (machine, name, variant, case): {
            "run": max(one["run"] for one in rounds),
            "disturbed": sum(one["is_disturbed"] for one in rounds),
        }
        for (machine, variant, case), rounds in kept.items()
    }
    assert_same(table(texts, "runs", 4), newest)
    without: Table = {
        (machine, name, variant, case): {
            "status": rounds[0]["status"],
            "reason": rounds[0]["reason"],
        }
        for (machine, variant, case), rounds in kept.items()
        if rounds[0]["status"] != "ok"
    }
    assert_same(table(texts, "skipped", 4), without)
