"""How often the method called two entries that are one program different."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from analysis.base.quantities import WITHIN, percent, ratio
from analysis.base.statistics import CONFIDENCE
from analysis.site.facts.inputs import Inputs
from analysis.site.pages.html import table

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


def agreement_section(inputs: Inputs) -> str:
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
