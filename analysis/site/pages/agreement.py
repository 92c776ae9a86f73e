"""False alarms: how often two entries of one program came out as different."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from analysis.base.quantities import WITHIN, percent, ratio
from analysis.base.statistics import CONFIDENCE
from analysis.site.facts.inputs import Inputs
from analysis.site.pages.html import table
from analysis.site.pages.page import macro

if TYPE_CHECKING:
    import pandas as pd

DIFFERENT: Final = ("faster", "slower")


def agreement_sentence(inputs: Inputs) -> str:
    """Numbers of comparisons between repeats that came out as different."""
    repeats = inputs.tables["repeats"]
    verdicts = list(repeats["verdict"])
    if not verdicts:
        return "No program has been measured twice in a run yet."
    different = sum(map(verdicts.count, DIFFERENT))
    return (
        f"{len(verdicts)} comparisons within a run are between two entries of one program:"
        f" {different} ({percent(different / len(verdicts))}) came out as faster or slower,"
        f" {verdicts.count('same')} as the same within {WITHIN} and"
        f" {verdicts.count('unclear')} as unclear."
        f"{_between_runs(repeats)}"
    )


def _between_runs(repeats: pd.DataFrame) -> str:
    """The sentence about comparisons of a run with other runs; empty if there are too few."""
    is_different = _different_between_runs(repeats)
    if is_different.empty:
        return ""
    return (
        f" Identical programs compared across runs differ in {int(is_different.sum())} of"
        f" {len(is_different)} cases ({percent(float(is_different.mean()))}). This site therefore"
        " compares variants only within a run. Machines share no run, so comparing them needs wider"
        " intervals."
    )


def _different_between_runs(repeats: pd.DataFrame) -> pd.Series[bool]:
    """Whether each comparison with other runs came out as different."""
    verdicts = repeats.loc[repeats["between_verdict"] != "", "between_verdict"]
    return verdicts.isin(DIFFERENT)


@macro("agreement_in_brief")
def in_brief(inputs: Inputs) -> str:
    """One sentence with the false alarms within a run and between runs; empty without any."""
    repeats = inputs.tables["repeats"]
    if repeats.empty:
        return ""
    within = float(repeats["verdict"].isin(DIFFERENT).mean())
    between = _different_between_runs(repeats)
    others = f", and in {percent(float(between.mean()))} across runs" if len(between) else ""
    return (
        "Two entries of the same program come out as different in"
        f" {percent(within)} of comparisons within a run{others}."
    )


@macro("agreement")
def agreement_section(inputs: Inputs) -> str:
    """The false alarms of the method: differences between two measurements of one program."""
    sentence = agreement_sentence(inputs)
    if inputs.tables["repeats"].empty:
        return sentence
    expected = 1 - CONFIDENCE
    sentence += (
        f" With {CONFIDENCE * 100:g} % intervals, {expected * 100:.0f} % false alarms are expected,"
        " and fewer if narrow intervals give the verdict `same`."
    )
    groups = inputs.tables["repeats"].groupby(["machine", "study"])
    rows = [
        [inputs.called(str(machine)), str(study), *_rates(repeats)]
        for (machine, study), repeats in groups
    ]
    columns = ["machine", "study", "within a run", "false alarms", "range of ratios"]
    columns += ["between runs", "false alarms", "most in run"]
    return f"{sentence}\n\n{table(columns, rows, numeric=columns[2:7])}"


def _rates(repeats: pd.DataFrame) -> list[str]:
    """Cells for one study on one machine: comparisons and false alarms, within a run and between
    runs, and the run with most of the latter."""
    within = repeats["verdict"].isin(DIFFERENT)
    least, most = (float(repeats["ratio"].agg(end)) for end in ("min", "max"))
    between = _different_between_runs(repeats)
    runs = repeats.loc[between.index[between], "run"].value_counts()
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
