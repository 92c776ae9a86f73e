"""A check that the charts of a page can be drawn."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from jinja2 import Environment, nodes

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


def shown_charts(study: Study) -> set[str]:
    """Names of the study's charts that any page shows, in its text or folded at its end."""
    found = set()
    for page in (ROOT / "docs").rglob("*.md"):
        of_page = page.stem if page.parent.name == "studies" else ""
        for call in Environment().parse(page.read_text()).find_all(nodes.Call):
            named = {one.key: one.value for one in call.kwargs}
            about = named["study"].as_const() if "study" in named else of_page
            if about != study.name or not isinstance(call.node, nodes.Name):
                continue
            if call.node.name == "chart":
                found.add(call.args[0].as_const())
            elif call.node.name == "evidence":
                found |= named["charts"].as_const().keys() if "charts" in named else set()
                found |= {"cases"} if call.args else set()
    return found


def assert_page_is_drawn(
    facts: StudyFacts, specific: Collection[str], folder: Path, *, but: Collection[str] = ()
) -> None:
    """Check that pages show the charts `specific` to the study, and that all that they show of it,
    except `but`, can be drawn."""
    named = shown_charts(facts.study)
    made = drawn_charts(facts)
    assert named >= set(specific)
    for name in named - set(but):
        write_chart(made[name], folder, name)
