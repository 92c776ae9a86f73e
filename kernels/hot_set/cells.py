"""Measured cells of this study, and the answers that its tables and its form make of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, Final

import pandas as pd

from analysis.api.charts import StudyFacts, fresh_figures
from analysis.api.study import parse_case
from analysis.api.tables import Point, Times, link_rates

CLOCK: Final = "host_time"
"""The time that compares all variants, with and without the CPU."""
FETCH_ALL: Final = "ceiling_misses_alone"
"""Fetches rows that are given, without any look-up."""
PUBLISHED_WAY: Final = "v3_block_per_request"
"""The step in the way of the published kernels."""
SCATTERED: Final = "scattered"
USUAL_KEYS: Final = ("requests", "topk", "slots", "misses", "pool_mib", "layout")
PLACE: Final = ["machine", "requests", "topk", "slots", "pool_mib", "layout", "layers"]
"""Columns of the work of a step apart from its misses, and of the machine."""
CURVE: Final = [*PLACE, "misses"]
MODEL_LAYERS: Final = 60


def step_names(facts: StudyFacts) -> list[str]:
    """Steps of the journey and beyond with exact LRU whose rows are those of one layer, in their
    order."""
    size = facts.study.constants["token_bytes"]
    return [
        variant.name
        for variant in facts.study.with_role("step", "beyond")
        if variant.constants["token_bytes"] == size and "policy" not in variant.options
    ]


def cells(facts: StudyFacts, metric: str = CLOCK) -> pd.DataFrame:
    """Fresh `seconds` by CURVE and variant, of cases that have USUAL_KEYS and, at most, `layers`.
    `misses` are those of all requests of a layer."""
    rows = fresh_figures(facts, metric)
    others = [*{*facts.study.case_keys} - {*USUAL_KEYS, "layers"}]
    has_all = rows[[*USUAL_KEYS]].notna().all(axis=1)
    rows = rows[has_all & rows[others].isna().all(axis=1)].fillna({"layers": 1})
    whole = dict.fromkeys((*PLACE[1:5], "layers", "misses"), int)
    return rows.rename(columns={"median": "seconds"}).astype(whole)


def of_variants(found: pd.DataFrame, names: Sequence[str]) -> pd.DataFrame:
    """The cells of these variants, in the order of their names."""
    found = found[found["variant"].isin(names)]
    return found.sort_values("variant", key=lambda of: of.map(names.index), kind="stable")


def fastest(found: pd.DataFrame) -> pd.DataFrame:
    """The fastest cell of each place and number of misses, in the order of CURVE."""
    first = found.sort_values("seconds", kind="stable").drop_duplicates(CURVE)
    return first.sort_values(CURVE)


def scattered_steps(facts: StudyFacts) -> pd.DataFrame:
    """The cells of the steps with scattered rows."""
    found = cells(facts)
    return of_variants(found[found["layout"] == SCATTERED], step_names(facts))


def answerable(facts: StudyFacts, layers: int) -> pd.DataFrame:
    """The scattered steps of this number of layers with the headline's slots, and their `point`:
    requests, bytes of the pool and misses."""
    found = scattered_steps(facts)
    slots = parse_case(facts.study.headline)["slots"]
    found = found[(found["slots"] == slots) & (found["layers"] == layers)]
    points: Any = zip(found["requests"], found["pool_mib"] * 2**20, found["misses"], strict=True)
    return found.assign(point=[*points])


def times_by_machine(facts: StudyFacts) -> Mapping[str, Times]:
    """Seconds of a layer by each step, by machine and point, never less than the link needs.

    Points without the published way are left out: few variants are measured there.
    """
    links, row_bytes = link(facts), facts.study.constants["token_bytes"]
    found: dict[str, dict[Point, dict[str, float]]] = defaultdict(lambda: defaultdict(dict))
    for row in answerable(facts, 1).to_dict("records"):
        machine = row["machine"]
        least = row["misses"] * row_bytes / links[machine] if machine in links else 0.0
        found[machine][row["point"]][row["variant"]] = max(row["seconds"], least)
    complete = {
        machine: {point: ways for point, ways in times.items() if PUBLISHED_WAY in ways}
        for machine, times in found.items()
    }
    return {machine: times for machine, times in complete.items() if times}


def link(facts: StudyFacts) -> Mapping[str, float]:
    """Highest measured rate of the link in B/s, by machine: of the copy engine, or of the misses
    alone."""
    assert facts.study.limit is not None
    rates = dict(link_rates(facts.inputs.results, facts.study.limit))
    found = of_variants(cells(facts), [FETCH_ALL])
    payload = found["layers"] * found["misses"] * facts.study.constants["token_bytes"]
    for machine, rate in (payload / found["seconds"]).groupby(found["machine"]).max().items():
        rates[str(machine)] = max(rates.get(str(machine), 0.0), rate)
    return rates


def seconds_per_byte(facts: StudyFacts) -> Mapping[str, float]:
    """By machine: what one further byte takes in a step of one request, from the largest pool, by
    the fastest variants."""
    found = scattered_steps(facts)
    found = fastest(found[(found["requests"] == 1) & (found["layers"] == 1)])
    rates: dict[str, float] = {}
    for (machine, *_), curve in found.groupby(PLACE):  # the largest pool comes last
        if len(curve) > 1:
            last = curve[["seconds", "misses"]].diff().iloc[-1]
            rates[str(machine)] = (
                last["seconds"] / last["misses"] / facts.study.constants["token_bytes"]
            )
    return rates
