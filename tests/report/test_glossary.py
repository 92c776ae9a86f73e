"""The glossary: in order, short, linked from the pages, and true of the counters."""

from __future__ import annotations

import re

from analysis import ROOT
from analysis.profile.ncu import METRICS
from analysis.report.counters import QUANTITIES

GLOSSARY = (ROOT / "docs" / "glossary.md").read_text()
TERMS, _, COUNTERS = GLOSSARY.partition("\n## ")
ENTRIES = re.findall(
    r"^### ([^\n{]+) \{: #([a-z0-9-]+)\}\n\n(.+?)\n*(?=\n\n###|\Z)", TERMS, re.M | re.S
)


def test_terms_are_in_order_and_told_in_few_words() -> None:
    names = [name.lower() for name, _, _ in ENTRIES]
    assert len(names) == GLOSSARY.count("\n### ") > 30
    assert names == sorted(names)
    assert all(len(text.split()) <= 50 and text.endswith(".") for _, _, text in ENTRIES)


def test_study_pages_link_terms_once_each() -> None:
    for page in (ROOT / "docs" / "studies").glob("*.md"):
        linked = re.findall(r"\(\.\./glossary\.md#([a-z0-9-]+)\)", page.read_text())
        assert len(linked) == len(set(linked)), page.name
        assert set(linked) <= {anchor for _, anchor, _ in ENTRIES}, page.name
        assert linked, page.name


def test_counters_are_those_of_the_pages_and_of_the_profiler() -> None:
    rows = re.findall(r"^\| ([^|]+) \| [^|]+ \| (`[^|]+`) \|$", COUNTERS, re.M)
    assert [name for name, _ in rows] == list(QUANTITIES)
    for _, names in rows:
        for name in re.findall(r"`([^`]+)`", names):
            pattern = re.escape(name).replace(r"\*", r"\w+")
            assert any(re.fullmatch(pattern, metric) for metric in METRICS), name
