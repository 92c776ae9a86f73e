"""Facts from the results of this repository."""

from __future__ import annotations

from pathlib import Path

from analysis import ROOT
from analysis.results.collect import collect
from analysis.results.tables.summary import summarise
from analysis.site.facts.inputs import load_inputs
from analysis.site.facts.study_facts import StudyFacts
from analysis.study import Study


def committed_facts(study: Study) -> StudyFacts:
    """A study with its committed times on all machines, without other tables."""
    results, nowhere = ROOT / "results", Path("no tables")
    samples = collect(results, {study.name: study}, only={study.name}).samples
    summary = summarise(samples, {study.name: study}).assign(run="", disturbed=0)
    inputs = load_inputs(nowhere, results, {study.name: study})
    return StudyFacts(inputs.with_tables(summary=summary), study)
