"""The sentence about false alarms."""

from __future__ import annotations

import pandas as pd

from analysis.results.tables.rows import RepeatRow, columns
from analysis.site.facts.inputs import Inputs
from analysis.site.pages.agreement import agreement_sentence, in_brief


def said(inputs: Inputs, *verdicts: tuple[str, str]) -> str:
    """The sentence with repeats of these verdicts, within a run and between runs."""
    repeats = pd.DataFrame(verdicts, columns=["verdict", "between_verdict"])
    return agreement_sentence(
        inputs.with_tables(repeats=repeats.reindex(columns=columns(RepeatRow)))
    )


def test_differences_between_runs_are_counted_apart(two_machines: Inputs) -> None:
    sentence = said(
        two_machines, ("same", "faster"), ("slower", "slower"), ("unclear", "same"), ("same", "")
    )
    assert ": 1 (25 %) came out as faster or slower, 2 as the same" in sentence
    assert "across runs differ in 2 of 3 cases (67 %). This site" in sentence


def test_one_sentence_has_both_rates(two_machines: Inputs) -> None:
    verdicts = [("same", "faster"), ("slower", "slower"), ("unclear", "same"), ("same", "")]
    repeats = pd.DataFrame(verdicts, columns=["verdict", "between_verdict"])
    inputs = two_machines.with_tables(repeats=repeats.reindex(columns=columns(RepeatRow)))
    assert in_brief(inputs).endswith("25 % of comparisons within a run, and in 67 % across runs.")
    assert in_brief(inputs.with_tables(repeats=repeats.iloc[:0])) == ""


def test_without_other_runs_only_those_within_a_run_are_counted(two_machines: Inputs) -> None:
    assert "across runs" not in said(two_machines, ("same", ""))
