"""How often the method called two entries that are one program different."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from analysis.facts.figures import Figures
from analysis.facts.inputs import Inputs
from analysis.facts.rows import RepeatabilityRow, rows_of
from analysis.quantities import WITHIN, listing, percent, ratio
from analysis.report.html import table
from analysis.statistics import CONFIDENCE, FEWEST_RUNS

if TYPE_CHECKING:
    import pandas as pd

DIFFERENT: Final = ("faster", "slower")


def agreement_sentence(inputs: Inputs) -> str:
    """How many of the comparisons between repeats were called different."""
    verdicts = list(inputs.repeats["verdict"])
    if not verdicts:
        return "No repeat of one program has been measured yet."
    different = sum(map(verdicts.count, DIFFERENT))
    return (
        f"Of {len(verdicts)} comparisons within a run between two entries that are one program,"
        f" {different} ({percent(different / len(verdicts))}) were called faster or slower,"
        f" {verdicts.count('same')} the same within {WITHIN} and"
        f" {verdicts.count('unclear')} unclear."
    )


def agreement(inputs: Inputs) -> str:
    """How often the method called repeats of one program different; Markdown."""
    sentence = agreement_sentence(inputs)
    if inputs.repeats.empty:
        return sentence
    expected = 1 - CONFIDENCE
    sentence += (
        f" With {CONFIDENCE * 100:g} % intervals, {expected * 100:.0f} % of false calls are to be"
        " expected, and fewer where intervals are so narrow that the verdict is `same`."
    )
    groups = inputs.repeats.groupby(["machine", "study"])
    rows = [
        [inputs.called(str(machine)), str(study), *_rates(repeats)]
        for (machine, study), repeats in groups
    ]
    columns = ["machine", "study", "within a run", "called different", "ratios from, to"]
    columns += ["between runs", "called different", "most of them in"]
    return f"{sentence}\n\n{table(columns, rows, numeric=columns[2:7])}"


def _rates(repeats: pd.DataFrame) -> list[str]:
    """Of one study on one machine: comparisons within a run and between runs, how many of them were
    called different, and which run has the most of the latter."""
    within = repeats["verdict"].isin(DIFFERENT)
    least, most = (float(repeats["ratio"].agg(end)) for end in ("min", "max"))
    known = repeats[repeats["between_verdict"] != ""]
    between = known["between_verdict"].isin(DIFFERENT)
    runs = known.loc[between, "run"].value_counts()
    return [
        *(str(len(within)), _share(within)),
        f"{ratio(least)} to {ratio(most)}",
        *(str(len(between)) if len(between) else "too few runs", _share(between)),
        f"{runs.idxmax()}: {runs.max()}" if len(runs) else "",
    ]


def _share(is_different: pd.Series[bool]) -> str:
    """`3 (1.2 %)`; empty where nothing was compared."""
    if is_different.empty:
        return ""
    return f"{int(is_different.sum())} ({percent(float(is_different.mean()))})"


def repeatability(inputs: Inputs) -> str:
    """Figures made of all runs but the newest, held against that one: a row a study; Markdown."""
    rows = rows_of(inputs.repeatability, RepeatabilityRow)
    if not rows:
        return f"No machine has more than {FEWEST_RUNS} runs yet."
    columns = ["machine", "study", "runs", "kept out", "times inside", "ratios inside"]
    columns += ["contradicted", "repeats called different", "claims that flip"]
    lines = [
        [
            *(inputs.called(row.machine), row.study, str(row.runs), row.held_run),
            *(_of(row.times_inside, row.times), _of(row.ratios_inside, row.ratios)),
            *(_of(row.contradicted, row.decided), _of(row.repeats_different, row.repeats)),
            _of(row.claims_flipped, row.claims),
        ]
        for row in rows
    ]
    flips = _total(rows, "claims_flipped", "claims")
    share = f"{CONFIDENCE * 100:g} %"
    said = [
        f"In the {share} intervals made without them lie {_inside(rows)}; of the claims that both"
        f" decide, {flips} flip.",
        "\n".join(_by_kind(inputs, rows)),
        f"Where about {share} of the times lie inside, times can be expected of another host, too."
        " Where fewer do, rely on ratios.",
    ]
    return "\n\n".join([*said, table(columns, lines, numeric=columns[4:])])


def _by_kind(inputs: Inputs, rows: Sequence[RepeatabilityRow]) -> Iterator[str]:
    """The same of studies that move data and of the others, an item each; Markdown."""
    kinds: dict[bool, list[RepeatabilityRow]] = {True: [], False: []}
    for row in rows:
        kinds[Figures(inputs, inputs.studies[row.study]).are_rates].append(row)
    for moves_data, own in kinds.items():
        names = listing([f"`{name}`" for name in dict.fromkeys(row.study for row in own)])
        where = "Where every step delivers bytes" if moves_data else "Elsewhere"
        if own:
            yield f"- {where} ({names}): {_inside(own)}."


def _inside(rows: Sequence[RepeatabilityRow]) -> str:
    times = _total(rows, "times_inside", "times")
    return f"{times} times and {_total(rows, 'ratios_inside', 'ratios')} ratios"


def _total(rows: Sequence[RepeatabilityRow], some: str, all_: str) -> str:
    """`9 of 10 (90 %)`, over all `rows`."""
    count, total = (sum(getattr(row, name) for row in rows) for name in (some, all_))
    return f"{count} of {total}" + (f" ({percent(count / total)})" if total else "")


def _of(count: int, total: int) -> str:
    return f"{count} of {total}" if total else ""
