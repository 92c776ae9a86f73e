"""Copies of the repository to change, and what the report makes of them."""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from analysis import ROOT
from analysis.facts.inputs import Inputs, load_inputs
from analysis.report.site import build_site
from analysis.store.samples import Sample
from analysis.study import Study, Variant, discover
from analysis.tables.writing import write_tables
from tests.synthetic import samples_of

STUDY = "h2d_gather"


def make_root(folder: Path) -> Path:
    """A copy of what the report reads of a repository, to change."""
    for name in ("kernels", "docs", "results/published"):
        shutil.copytree(ROOT / name, folder / name)
    return folder


def make_tables(results: Path, studies: Mapping[str, Study], tables: Path) -> Path:
    """What the summary stage writes for these results."""
    write_tables(results, studies, tables)
    return tables


def make_inputs(root: Path) -> Inputs:
    studies = discover(root)
    tables = make_tables(root / "results", studies, root / "build")
    return load_inputs(tables, root / "results", root / "modules", studies)


def rows_without_value(study: Study, variant: Variant, status: str, reason: str) -> list[Sample]:
    return [
        replace(sample, value=None, verified=0, status=status, reason=reason)
        for sample in samples_of(study, variant, rounds=1)
    ]


def build(root: Path) -> Path:
    studies = discover(root)
    tables = make_tables(root / "results", studies, root / "build")
    site = root / "site"
    build_site(tables, root / "results", root / "modules", site, root)
    return site


def text_of(page: Path) -> str:
    """The page as words: no tags, white space collapsed."""
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page.read_text()))
