"""The glossary: grouped, in order, short, linked from the pages, and true of the counters."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from analysis import ROOT
from analysis.measure.profile.ncu import METRICS
from analysis.site.pages.counters import QUANTITIES
from analysis.site.pages.glossary import MAX_PAGES, link_back
from analysis.site.pages.navigation import navigation, page_names

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


def test_entries_lead_back_to_the_pages_that_use_them(tmp_path: Path) -> None:
    studies = tmp_path / "studies"
    studies.mkdir()
    glossary = tmp_path / "glossary.md"
    first, second, last = "Read together.", "The unit.", "Of two words."
    glossary.write_text(
        f"# Glossary\n\n## A\n\n### Line {{: #line}}\n\n{first}\n\n### SM {{: #sm}}\n\n{second}\n\n"
        f"## B\n\n### Page walk, TLB {{: #walk}}\n\n{last}\n"
    )
    (tmp_path / "home.md").write_text("# Home\n\n[A line](glossary.md#line). TLBs.\n")
    (studies / "b.md").write_text("# The b\n\nA page walk, and an [SM](../glossary.md#sm).\n")
    (studies / "a.md").write_text("---\ntitle: The a\n---\n\n# Other\n\nTLBs, lines.\n")
    for number in range(MAX_PAGES):
        (studies / f"general_{number}.md").write_text("# General\n\nAn SM.\n")
    link_back(tmp_path, ["studies/b.md", "home.md"])
    text = glossary.read_text()
    assert f"{first}\n\nUsed in [Home](home.md), [The a](studies/a.md).\n" in text
    assert f"{second}\n\nUsed in [The b](studies/b.md).\n" in text, "a general word"
    assert f"{last}\n\nUsed in [The b](studies/b.md), [The a](studies/a.md).\n" in text


def test_most_terms_of_the_repository_lead_back(tmp_path: Path) -> None:
    pages = shutil.copytree(ROOT / "docs", tmp_path / "docs")
    link_back(pages, page_names(navigation(pages)))
    assert (pages / "glossary.md").read_text().count("\nUsed in ") > len(ENTRIES) / 2
