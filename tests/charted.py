"""A check that the charts of a page can be drawn."""

from __future__ import annotations

import re
from collections.abc import Collection
from pathlib import Path

from analysis import ROOT
from analysis.site.charts.writing import write_chart
from analysis.site.facts.study_facts import StudyFacts
from analysis.study import Study
from tests.roots import drawn_charts, make_inputs
from tests.synthetic import Seconds, write_machine


def charted(study: Study, root: Path, seconds: Seconds, grid: str) -> StudyFacts:
    """The study with results of a machine, as long as `seconds` says, for its charts."""
    write_machine(root / "results", "box", study, noise=0.001, seconds=seconds, grid=grid)
    return StudyFacts(make_inputs(root, {study.name: study}), study)


def assert_page_is_drawn(
    facts: StudyFacts, specific: Collection[str], folder: Path, *, but: Collection[str] = ()
) -> None:
    """Check that the study's page names the charts `specific` to it, and that all named charts,
    except `but`, can be drawn."""
    page = (ROOT / "docs" / "studies" / f"{facts.study.name}.md").read_text()
    named = set(re.findall(r"chart\('(\w+)'", page))
    made = drawn_charts(facts)
    assert named >= set(specific)
    for name in named - set(but):
        write_chart(made[name], folder, name)
