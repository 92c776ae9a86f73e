"""The glossary: grouped, in order, short, linked from the pages, and true of the counters."""

from __future__ import annotations

import re

from analysis import ROOT
from analysis.measure.profile.ncu import METRICS
from analysis.site.pages.counters import QUANTITIES

GLOSSARY = (ROOT / "docs" / "glossary.md").read_text()
TERMS, _, COUNTERS = GLOSSARY.partition("\n## Hardware counters\n")
GROUPS = re.split(r"^## ", TERMS, flags=re.M)[1:]
ENTRY = re.compile(r"^### ([^\n{]+) \{: #([a-z0-9-]+)\}\n\n(.+?)\n*(?=\n\n##|\Z)", re.M | re.S)
ENTRIES = ENTRY.findall(TERMS)


def test_terms_are_grouped_in_order_and_short() -> None:
    assert len(ENTRIES) == GLOSSARY.count("\n### ") > 30
    assert len(GROUPS) > 3
    for group in GROUPS:
        names = [name.lower() for name, _, _ in ENTRY.findall(group)]
        assert names and names == sorted(names)
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
