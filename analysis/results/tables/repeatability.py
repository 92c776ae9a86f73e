"""build/repeatability.csv: would another run confirm the figures? The newest run of a machine
against what the others say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from itertools import chain
from typing import Final, NamedTuple

import pandas as pd

from analysis.base.forked import forked_map
from analysis.base.statistics import MIN_RUNS
from analysis.results.collect import KEY, chosen
from analysis.results.host_speed import at_host_speed
from analysis.results.model.fit import Fit
from analysis.results.tables.claims import claim_tables
from analysis.results.tables.model import model_table
from analysis.results.tables.newest import Apart, newest_apart
from analysis.results.tables.ratios import RATIO_KEY, ratios, ratios_by_round
from analysis.results.tables.repeats import repeats
from analysis.results.tables.rows import RepeatabilityRow, columns
from analysis.results.tables.summary import summarise, times_by_round
from analysis.study import Study
from analysis.study.claims.verdicts import NOT_TESTED

REPEATABILITY_COLUMNS: Final = columns(RepeatabilityRow)
CLAIM_KEY: Final = ["machine", "study", "claim"]
OPPOSITE: Final = {"faster": "slower", "slower": "faster"}


def repeatability(
    samples: pd.DataFrame,
    studies: Mapping[str, Study],
    published: Mapping[str, pd.DataFrame],
    machines: Mapping[str, Mapping[str, object]],
    fits: Mapping[str, Fit],
    newer: int = 0,
) -> pd.DataFrame:
    """A row a machine and study with more than MIN_RUNS fresh runs, in REPEATABILITY_COLUMNS.

    `samples` and `machines` are as `collect` gives them. The newest run of a study, or that with
    `newer` runs after it, is held out; its medians are compared with the intervals and verdicts of
    the other runs. Predictions use the `fits` to all runs on both sides.
    """

    def of_machine(machine: str) -> list[RepeatabilityRow]:
        apart = newest_apart(samples[samples["machine"] == machine], newer)
        return list(_of_machine(apart, studies, published, {machine: machines[machine]}, fits))

    rows = chain(*forked_map(of_machine, sorted(samples["machine"].unique())))
    return pd.DataFrame(map(asdict, rows), columns=REPEATABILITY_COLUMNS)


def _of_machine(
    apart: Apart,
    studies: Mapping[str, Study],
    published: Mapping[str, pd.DataFrame],
    described: Mapping[str, Mapping[str, object]],
    fits: Mapping[str, Fit],
) -> Iterator[RepeatabilityRow]:
    if apart.runs.empty:
        return
    (machine,) = described
    before = _Tables.of(apart.kept, studies, published, described, fits)
    after = _Tables.of(apart.held, studies, published, described, fits)
    usual = before.times[before.times["runs"] >= MIN_RUNS].set_index(KEY)["median"]
    held_times = _at_host_speed(apart.held, usual)
    for study in map(str, apart.runs.index):
        found = _compared(before.times, held_times, study, KEY, "median")
        times = _compared(before.times, after.times, study, KEY, "median")
        speed = _compared(before.ratios, after.ratios, study, RATIO_KEY, "ratio")
        same = repeats(speed, studies)
        judged = _compared(before.claims, after.claims, study, CLAIM_KEY, "measured")
        decided = speed["verdict"].isin(list(OPPOSITE))
        wrong = speed["verdict"].map(OPPOSITE) == speed["verdict_held"]
        tested = (judged[["verdict", "verdict_held"]] != NOT_TESTED).all(axis=1)
        yield RepeatabilityRow(
            machine=machine,
            study=study,
            runs=len(apart.runs[study]) - 1,
            held_run=apart.held_runs[study],
            times=len(found),
            times_inside=int(_inside(found, "median").sum()),
            on_any_host=int(_inside(times, "median", "any").sum()),
            half_width=float(((found["ci_high"] - found["ci_low"]) / 2 / found["median"]).median()),
            ratios=len(speed),
            ratios_inside=int(_inside(speed, "ratio").sum()),
            decided=int(decided.sum()),
            contradicted=int((decided & wrong).sum()),
            repeats=len(same),
            repeats_different=int(same["verdict"].isin(list(OPPOSITE)).sum()),
            claims=int(tested.sum()),
            claims_flipped=int((tested & (judged["verdict"] != judged["verdict_held"])).sum()),
        )


def _at_host_speed(samples: pd.DataFrame, usual: pd.Series) -> pd.DataFrame:
    """The `median` of each time of the one run in `samples` at the speed of its host, by KEY."""
    measured = chosen(samples)
    by_round = times_by_round(measured[(measured["status"] == "ok") & (measured["unit"] == "s")])
    return at_host_speed(by_round, usual).reset_index()


class _Tables(NamedTuple):
    """Times, ratios and verdicts on claims, from some runs."""

    times: pd.DataFrame
    ratios: pd.DataFrame
    claims: pd.DataFrame

    @classmethod
    def of(
        cls,
        samples: pd.DataFrame,
        studies: Mapping[str, Study],
        published: Mapping[str, pd.DataFrame],
        machines: Mapping[str, Mapping[str, object]],
        fits: Mapping[str, Fit],
    ) -> _Tables:
        summary = summarise(samples)
        model = model_table(summary, fits, machines, studies)
        return cls(
            times=summary[summary["unit"] == "s"],
            ratios=ratios(ratios_by_round(samples, studies)),
            # A claim is compared however few of the runs may judge it.
            claims=claim_tables(samples, studies, published, model).claims.drop(columns="runs"),
        )


def _compared(
    kept: pd.DataFrame, held: pd.DataFrame, study: str, key: list[str], value: str
) -> pd.DataFrame:
    """Rows of `kept` that are based on enough runs, beside the figures of the held-out run."""
    rows = kept[kept["study"] == study]
    rows = rows[rows["runs"] >= MIN_RUNS] if "runs" in rows else rows
    names = [*key, value, *(["verdict"] if "verdict" in held else [])]
    return rows.merge(held[names], on=key, suffixes=("", "_held"))


def _inside(table: pd.DataFrame, value: str, interval: str = "ci") -> pd.Series:
    """Whether the held-out figure lies in the interval, up to rounding."""
    slack = 1e-9 * table[value].abs()
    held = table[f"{value}_held"]
    inside: pd.Series = held.between(
        table[f"{interval}_low"] - slack, table[f"{interval}_high"] + slack
    )
    return inside
