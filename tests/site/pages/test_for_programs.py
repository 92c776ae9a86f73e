"""Files for programs: samples as Parquet, llms.txt, the feed, the citation."""

from __future__ import annotations

import datetime
import re
import tomllib
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import duckdb
import numpy as np
import pytest
import yaml

from analysis import ROOT
from analysis.base.errors import FieldError
from analysis.site.facts.inputs import load_inputs
from analysis.site.interface import OFFERED
from analysis.site.pages.feed import entries, feed
from analysis.site.pages.llms import llms_text
from analysis.site.pages.navigation import navigation
from analysis.site.pages.parquet import TYPES, write_parquet
from tests.repository import STUDIES
from tests.roots import rows_without_value
from tests.synthetic import CALLS, COPY, Sample, add_run, provenance_of, samples_in, write_machine

ATOM = "{http://www.w3.org/2005/Atom}"
CHANGELOG = ROOT / "CHANGELOG.md"


def plain(sample: Sample) -> list[object]:
    return [one.item() if isinstance(one, np.generic) else one for one in vars(sample).values()]


def test_parquet_has_every_sample_of_every_machine(tmp_path: Path) -> None:
    variant, skipped = COPY.with_role("step")[:2]
    write_machine(tmp_path, "box", COPY, variants=[variant])
    write_machine(tmp_path, "other-box", CALLS)
    rows = rows_without_value(COPY, skipped, "skipped", 'needs "more", or so')
    add_run(tmp_path, "box", "copy", skipped.name, rows, provenance_of(COPY, skipped))
    files = sorted(tmp_path.glob("*/*/*.csv"))
    target = tmp_path / "samples.parquet"
    write_parquet(load_inputs(tmp_path, tmp_path, {"copy": COPY, "calls": CALLS}).samples(), target)
    with duckdb.connect() as database:
        found = database.read_parquet(str(target))
        assert found.columns == list(TYPES)
        written = [(machine, *values) for machine, *values in found.fetchall()]
    expected = [
        (file.parent.parent.name, *plain(replace(sample, run=file.stem)))
        for file in files
        for sample in samples_in(file)
    ]
    assert sorted(map(repr, written)) == sorted(map(repr, expected))


def test_parquet_of_no_samples_has_their_columns(tmp_path: Path) -> None:
    target = tmp_path / "samples.parquet"
    write_parquet(load_inputs(tmp_path, tmp_path, {}).samples(), target)
    with duckdb.connect() as database:
        assert database.read_parquet(str(target)).columns == list(TYPES)


def test_llms_lists_pages_with_titles_and_tables_with_columns() -> None:
    pages = ROOT / "docs"
    text = llms_text(pages, navigation(pages), STUDIES, OFFERED)
    lines = dict(re.findall(r"^- \[[^]]+\]\(([^)]+)\): (.+)$", text, re.MULTILINE))
    names = (path.relative_to(pages).with_suffix("").as_posix() for path in pages.rglob("*.md"))
    assert {"./" if name == "index" else f"{name}/" for name in names} <= set(lines)
    for study in STUDIES.values():
        assert lines[f"studies/{study.name}/"] == " ".join(study.question.split())
    assert lines["data/ratios.csv"].startswith("machine, study, variant, against, case, metric")
    assert lines["data/samples.parquet"].startswith("machine, study, variant, case")
    assert all("{{" not in about for about in lines.values())
    assert all(about.endswith((".", "?")) or "data/" in path for path, about in lines.items())


def test_the_feed_has_every_entry_of_the_changelog_newest_first() -> None:
    changes = list(entries(CHANGELOG.read_text()))
    dates = [entry.date for entry in changes]
    assert dates == sorted(dates, reverse=True) and datetime.date.fromisoformat(dates[-1])
    root = ElementTree.fromstring(feed(CHANGELOG.read_text()))
    found = root.findall(f"{ATOM}entry")
    assert [entry.findtext(f"{ATOM}title") for entry in found] == [entry.title for entry in changes]
    assert root.findtext(f"{ATOM}updated") == f"{dates[0]}T00:00:00Z"
    ids = [entry.findtext(f"{ATOM}id") for entry in found]
    assert len(set(ids)) == len(ids)
    assert (found[0].findtext(f"{ATOM}content") or "").startswith("<ul>")


def test_feed_escapes_the_changelog() -> None:
    root = ElementTree.fromstring(feed("## 2026-01-02: a < b & c\n\n`<x>` & more\n"))
    content = root.findtext(f"{ATOM}entry/{ATOM}content")
    assert content == "<p><code>&lt;x&gt;</code> &amp; more</p>"


def test_a_heading_without_a_date_is_named() -> None:
    with pytest.raises(FieldError, match="heading: expected ## YYYY-MM-DD: title, got 'New'"):
        feed("# Changelog\n\n## New\n")


def test_citation_has_the_fields_of_its_schema() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert set(citation) >= {"cff-version", "message", "title", "authors"}
    assert set(citation) <= {
        *("cff-version", "message", "title", "authors", "type", "abstract", "version"),
        *("date-released", "license", "keywords", "url", "repository-code", "references"),
    }
    assert citation["cff-version"] == "1.2.0" and citation["type"] == "software"
    assert all(set(author) <= {"name", "website"} for author in citation["authors"])
    assert datetime.date.fromisoformat(citation["date-released"])
    project = tomllib.loads((ROOT / "env" / "pyproject.toml").read_text())["project"]
    assert citation["version"] == project["version"]
    assert citation["license"] == project["license"]
