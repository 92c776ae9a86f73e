"""Tables computed a second time from the files of runs: without pandas, and without the functions
that the tables use but those of statistics. Made-up results have everything that results can have.
"""

import csv
import json
import math
import random
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from io import StringIO
from pathlib import Path
from statistics import median, quantiles
from typing import Any, TypeAlias

import pytest

from analysis import ROOT
from analysis.base.statistics import (
    TIME,
    Kind,
    estimate,
    kind_of,
    median_interval,
    outside_of_others,
    verdict,
)
from analysis.results.store import METHOD_VERSION
from analysis.results.tables.of_study import study_tables
from analysis.study import Study, Variant
from analysis.study.source import fingerprint
from tests import repository
from tests.synthetic import CALLS, COPY, Sample, samples_of, write_run

TIME_METRICS = ("gpu_time", "host_time", "op_time")
Row: TypeAlias = "dict[str, Any]"
Runs: TypeAlias = "dict[str, list[float]]"
Table: TypeAlias = "dict[tuple[str, ...], Row]"
Cells: TypeAlias = "dict[tuple[str, str, str], list[Row]]"
"""Rows of the files of samples by machine, variant and case, oldest first."""


def read(results: Path, study: Study) -> Cells:
    """Rows of each cell that the summary uses: those of today's code, else those of the newest run;
    skipped ones only if no other is left, and failed ones alone."""
    cells: Cells = defaultdict(list)
    codes = {variant.name: fingerprint(study, variant) for variant in study.variants}
    for path in sorted(results.glob(f"*/{study.name}/*-????????.json"), key=lambda path: path.name):
        about = json.loads(path.read_text())
        disturbed = {str(one["round"]) for one in about["disturbed"]}
        for row in csv.DictReader(StringIO(path.with_suffix(".csv").read_text())):
            variant = row["variant"]
            code, version = about["variants"][variant]["source_sha256"], about["method_version"]
            values = {column: [*map(float, row[column].split())] for column in row if "[" in column}
            more = {"run": about["run"], "host": about["host"]["id"]}
            more |= {"is_disturbed": row["round"] in disturbed, "values": values}
            is_stale = (code, version) != (codes[variant], METHOD_VERSION)
            cells[path.parts[-3], variant, row["case"]].append(
                {**row, **more, "is_stale": is_stale}
            )
    for cell, rounds in cells.items():
        newest = max(one["run"] for one in rounds)
        fresh = [one for one in rounds if not one["is_stale"]]
        kept = fresh or [one for one in rounds if one["run"] == newest]
        kept = [one for one in kept if one["status"] != "skipped"] or kept
        cells[cell] = [one for one in kept if one["status"] == "failed"] or kept
    return cells


def of_visits(values: Sequence[float], visits: int) -> list[float]:
    each = max(len(values) // visits, 1)
    return [median(values[start : start + each]) for start in range(0, len(values), each)]


def figure(runs: Runs, kind: Kind) -> Row:
    medians = [median(rounds) for rounds in runs.values()]
    row = dict(zip(("median", "ci_low", "ci_high"), estimate([*runs.values()], kind), strict=True))
    by_run = "|".join(f"{one:.7g}" for one in medians)
    apart = sum(outside_of_others(medians, kind))
    return row | {"by_run": by_run, "apart": apart, "runs": len(runs)}


def summary(cells: Cells, study: Study) -> Table:
    """The rows of summary.csv by their first five columns."""
    visits = {case.id: case.visits for v in study.variants for case in v.cases}
    table: Table = {}
    for (machine, variant, case), rounds in cells.items():
        kept = [one for one in rounds if one["status"] == "ok"]
        for column in {column for one in kept for column, of in one["values"].items() if of}:
            metric, unit = column[:-1].split(" [")
            these = [one for one in kept if one["values"].get(column)]
            runs: Runs = defaultdict(list)
            for one in these:
                runs[one["run"]].append(
                    median(of_visits(one["values"][column], visits.get(case, 1)))
                )
            values = sorted(value for one in these for value in one["values"][column])
            throttled = sum(len(one["values"][column]) for one in these if one["throttle"])
            q1, _, q3 = quantiles(values, n=4, method="inclusive") if values[1:] else values * 3
            known = study.metrics.get(metric)
            kind = known.values if known else kind_of(unit)
            table[machine, study.name, variant, case, metric] = figure(runs, kind) | {
                "unit": unit,
                "q1": q1,
                "q3": q3,
                "n": len(values),
                "rounds": len(these),
                "verified": min(int(one["verified"]) for one in these),
                "throttled": throttled / len(values),
                "stale": int(these[0]["is_stale"]),
                "hosts": len({one["host"] for one in these}),
            }
    return table


def pairs(study: Study) -> Iterator[tuple[Variant, Variant, str]]:
    """The variants to compare, and the one case in which they are, or none for all."""
    usual = list(study.comparisons())
    yield from ((a, b, "") for a, b in usual)
    steps = [v for v in study.variants if v.role in ("step", "beyond") and not study.is_repeat(v)]
    for n, step in enumerate(steps):
        for other in (other for other in steps[:n] if (step, other) not in usual):
            yield step, other, study.shown_case(step).id


def ratios(cells: Cells, study: Study) -> Iterator[tuple[tuple[str, ...], Runs, set[str]]]:
    """Of each row of ratios.csv, by its first six columns, the ratios of rounds, and the hosts."""
    for of, over, only in pairs(study):
        for (machine, name, case), rounds in cells.items():
            if name != of.name or (only and case != only):
                continue
            others = {
                (one["run"], one["round"]): one for one in cells.get((machine, over.name, case), ())
            }
            visits = next((c.visits for c in of.cases if c.id == case), 1)
            for metric in TIME_METRICS[of.host_work or over.host_work :]:
                runs: Runs = defaultdict(list)
                hosts = set()
                for one in rounds:
                    other = others.get((one["run"], one["round"]))
                    if other is None or one["is_stale"] or other["is_stale"]:
                        continue
                    times = [r["values"].get(f"{metric} [s]", []) for r in (one, other)]
                    both = [of_visits(values, visits) for values in times]
                    if all(both):
                        ratio = median(b / a for a, b in zip(*both, strict=True))
                        runs[one["run"]].append(ratio)
                        hosts.add(one["host"])
                if runs:
                    yield (machine, study.name, of.name, over.name, case, metric), runs, hosts


def compared(runs: Runs, hosts: set[str]) -> Row:
    """A row of ratios.csv."""
    found = figure(runs, TIME)
    ends = (found.pop("median"), found["ci_low"], found["ci_high"])
    said = verdict(*ends, [median(of_run) for of_run in runs.values()])
    return found | {"ratio": ends[0], "verdict": said, "hosts": len(hosts)}


def repeatability(found: Sequence[Any], machine: str, times: Table) -> Row:
    """How often a run lies inside of what the others predict, and contradicts what they decide."""
    by_run = [
        [float(one) for one in row["by_run"].split("|")]
        for key, row in times.items()
        if key[0] == machine and row["unit"] == "s" and not row["stale"]
    ]
    many = [runs for key, runs, _ in found if key[0] == machine and len(runs) >= 4]
    of_runs = [[median(rounds) for rounds in runs.values()] for runs in many]
    decided = contradicted = 0
    for runs, medians in zip(many, of_runs, strict=True):
        for n, rounds in enumerate(runs.values()):
            others = [*medians[:n], *medians[n + 1 :]]
            by_others = verdict(median(others), math.nan, math.nan, others)
            alone = verdict(median(rounds), *median_interval(rounds))
            decided += by_others in ("faster", "slower")
            contradicted += {by_others, alone} == {"faster", "slower"}
    row = {"decided": decided, "contradicted": contradicted}
    for name, known in (("times", by_run), ("ratios", of_runs)):
        outside = [one for runs in known if len(runs) >= 4 for one in outside_of_others(runs)]
        row |= {name: len(outside), f"{name}_inside": outside.count(False)}
    return row


def made_up(results: Path, study: Study) -> None:
    """Six runs on four hosts of one machine and two of another, with all that a cell can have."""
    draw = random.Random(study.name)
    places = [("box", host) for host in "1122341"] + [("other", "5")] * 2
    for number, (machine, host) in enumerate(places):
        run = f"2026-01-{number + 1:02}T00:00:00Z"
        slow = draw.lognormvariate(0, 0.02)
        every: list[Sample] = []
        stale: dict[str, str] = {}
        for variant in study.variants:
            is_gone = (variant.name, machine) == ("looping", "other")
            if is_gone or draw.random() < 0.15:
                stale[variant.name] = "0" * 64
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
                    none |= {"status": "skipped", "reason": "no room"}
                    samples = [replace(s, **none) for s in samples_of(study, variant, run=run)]
                case 1 if number == 2:
                    samples = [one for one in samples if (one.case, one.round) != (first.case, 0)]
                    samples.append(replace(first, **none, status="failed", reason="byte 3"))
                case 2:
                    samples = [replace(one, verified=0) for one in samples]
                case 3:
                    samples = [one for one in samples if one.round != 1]
            every += samples
        disturbed = [{"round": number % 5, "why": ["heat"]}]
        write_run(results, machine, study, every, stale, {"host": host * 8}, disturbed=disturbed)


def table(texts: Mapping[str, str], name: str, key: Sequence[str]) -> Table:
    rows = list(csv.DictReader(StringIO(texts[f"{name}.csv"])))
    found = {tuple(row[column] for column in key): row for row in rows}
    assert len(found) == len(rows)
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
    times, found = summary(cells, study), list(ratios(cells, study))
    repeats: Table = {
        (*key, run): compared({run: rounds}, {""})
        for key, runs, _ in found
        if study.is_repeat(study.variant(key[2])) and study.variant(key[2]).after == key[3]
        for run, rounds in runs.items()
    }
    newest: Table = {}
    without: Table = {}
    for (machine, variant, case), rounds in cells.items():
        key, first = (machine, name, variant, case), rounds[0]
        disturbed = sum(one["is_disturbed"] for one in rounds)
        newest[key] = {"run": max(one["run"] for one in rounds), "disturbed": disturbed}
        if first["status"] != "ok":
            without[key] = {"status": first["status"], "reason": first["reason"]}
    of_machines = table(texts, "repeatability", ["machine", "study"])
    expected = {key: repeatability(found, key[0], times) for key in of_machines}
    assert_same(of_machines, expected)
    cell = ["machine", "study", "variant", "case"]
    of_ratio = ["machine", "study", "variant", "against", "case", "metric"]
    tables: list[tuple[str, list[str], Table]] = [
        ("summary", [*cell, "metric"], times),
        ("ratios", of_ratio, {key: compared(runs, hosts) for key, runs, hosts in found}),
        ("repeats", [*of_ratio, "run"], repeats),
        ("runs", cell, newest),
        ("skipped", cell, without),
    ]
    for file, columns, rows in tables:
        assert_same(table(texts, file, columns), rows)
