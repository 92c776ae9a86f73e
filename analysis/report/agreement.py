"""How often the method called two entries that are one program different."""

from __future__ import annotations

from typing import Final

from analysis.facts.inputs import Inputs
from analysis.facts.rows import RepeatabilityRow, rows_of
from analysis.quantities import WITHIN, percent, ratio
from analysis.report.html import code, table
from analysis.statistics import CONFIDENCE, FEWEST_RUNS

DIFFERENT: Final = ("faster", "slower")


def agreement_sentence(inputs: Inputs) -> str:
    """How many of the comparisons between repeats were called different."""
    verdicts = list(inputs.repeats["verdict"])
    if not verdicts:
        return "No repeat of one program has been measured yet."
    different = sum(map(verdicts.count, DIFFERENT))
    return (
        f"Of {len(verdicts)} comparisons between two entries that are one program, {different}"
        f" ({percent(different / len(verdicts))}) were called faster or slower,"
        f" {verdicts.count('same')} the same within {WITHIN} and"
        f" {verdicts.count('unclear')} unclear."
    )


def agreement(inputs: Inputs) -> str:
    """How often the method called repeats of one program different; Markdown."""
    sentence = agreement_sentence(inputs)
    if inputs.repeats.empty:
        return sentence
    sentence += (
        f" With {CONFIDENCE * 100:g} % intervals, {(1 - CONFIDENCE) * 100:.0f} % of false calls are"
        " to be expected, and fewer where intervals are so narrow that the verdict is `same`."
    )
    rows = []
    for (machine, study, variant), repeats in inputs.repeats.groupby(
        ["machine", "study", "variant"]
    ):
        different = int(repeats["verdict"].isin(DIFFERENT).sum())
        least, most = (float(repeats["ratio"].agg(end)) for end in ("min", "max"))
        rows.append(
            [
                *(machine, study, code(variant), str(len(repeats)), str(different)),
                f"{ratio(least)} to {ratio(most)}",
            ]
        )
    columns = ["machine", "study", "variant", "comparisons", "called different", "ratios from, to"]
    return f"{sentence}\n\n{table(columns, rows, numeric=columns[3:])}"


def repeatability(inputs: Inputs) -> str:
    """Figures made of all runs but the newest, held against that one: a row a study; Markdown."""
    rows = rows_of(inputs.repeatability, RepeatabilityRow)
    if not rows:
        return f"No machine has more than {FEWEST_RUNS} runs yet."
    columns = ["machine", "study", "runs", "kept out", "times inside", "ratios inside"]
    columns += ["contradicted", "repeats called different", "claims that flip"]
    lines = [
        [
            *(row.machine, row.study, str(row.runs), row.held_run),
            *(_of(row.times_inside, row.times), _of(row.ratios_inside, row.ratios)),
            *(_of(row.contradicted, row.decided), _of(row.repeats_different, row.repeats)),
            _of(row.claims_flipped, row.claims),
        ]
        for row in rows
    ]
    inside, times = (sum(getattr(row, name) for row in rows) for name in ("times_inside", "times"))
    flips, claims = (
        sum(getattr(row, name) for row in rows) for name in ("claims_flipped", "claims")
    )
    sentence = (
        f"Of {times} times, {inside} ({percent(inside / times)}) lie in the"
        f" {CONFIDENCE * 100:g} % interval made without them; of {claims} claims that both decide,"
        f" {flips} flip."
    )
    return f"{sentence}\n\n{table(columns, lines, numeric=columns[4:])}"


def _of(count: int, total: int) -> str:
    return f"{count} of {total}" if total else ""
