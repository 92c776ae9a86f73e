"""Whether another run would confirm the figures: the newest run against all others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from analysis.base.quantities import listing, percent
from analysis.base.statistics import CONFIDENCE, MIN_RUNS
from analysis.site.facts.figures import Figures
from analysis.site.facts.inputs import Inputs
from analysis.site.facts.rows import RepeatabilityRow, rows_of
from analysis.site.pages.html import table
from analysis.site.pages.page import macro


@macro("repeatability")
def repeatability_section(inputs: Inputs) -> str:
    """How well the other runs of each machine predict its newest run."""
    rows = rows_of(inputs.tables["repeatability"], RepeatabilityRow)
    if not rows:
        return f"No machine has more than {MIN_RUNS} runs yet."
    columns = ["machine", "study", "runs", "left-out run", "times inside", "on any host"]
    columns += ["half-width", "ratios inside", "contradicted", "false alarms", "flipped claims"]
    lines = [
        [
            *(inputs.called(row.machine), row.study, str(row.runs), row.held_run),
            *(_of(row.times_inside, row.times), _of(row.on_any_host, row.times)),
            *(percent(row.half_width), _of(row.ratios_inside, row.ratios)),
            *(_of(row.contradicted, row.decided), _of(row.repeats_different, row.repeats)),
            _of(row.claims_flipped, row.claims),
        ]
        for row in rows
    ]
    flips = _total(rows, "claims_flipped", "claims")
    share = f"{CONFIDENCE * 100:g} %"
    said = [
        f"The {share} intervals of the other runs contain {_inside(rows)} of the left-out runs."
        f" Without regard to the speed of the host, they contain"
        f" {_total(rows, 'on_any_host', 'times')} times. Of the claims that these runs"
        f" and the left-out run both decide, {flips} flip.",
        "\n".join(_by_kind(inputs, rows)),
        f"If about {share} of the times lie inside, expect that for another host as well. If fewer"
        " do, rely on ratios.",
    ]
    return "\n\n".join([*said, table(columns, lines, numeric=columns[4:])])


def _by_kind(inputs: Inputs, rows: Sequence[RepeatabilityRow]) -> Iterator[str]:
    """The counts of `_inside` for studies that move data and for the others, as items; Markdown."""
    kinds: dict[bool, list[RepeatabilityRow]] = {True: [], False: []}
    for row in rows:
        kinds[Figures(inputs, inputs.studies[row.study]).are_rates].append(row)
    for moves_data, of_kind in kinds.items():
        names = listing([f"`{name}`" for name in dict.fromkeys(row.study for row in of_kind)])
        where = "Studies that move data" if moves_data else "Other studies"
        if of_kind:
            yield f"- {where} ({names}): {_inside(of_kind)}."


def _inside(rows: Sequence[RepeatabilityRow]) -> str:
    times = _total(rows, "times_inside", "times")
    return f"{times} times and {_total(rows, 'ratios_inside', 'ratios')} ratios"


def _total(rows: Sequence[RepeatabilityRow], some: str, all_: str) -> str:
    """`9 of 10 (90 %)`, over all `rows`."""
    count, total = (sum(getattr(row, name) for row in rows) for name in (some, all_))
    return f"{count} of {total}" + (f" ({percent(count / total)})" if total else "")


def _of(count: int, total: int) -> str:
    return f"{count} of {total}" if total else ""
