"""Repositories to change, and what the tables and the report make of them."""

import json
import math
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

import vl_convert
from filelock import FileLock

from analysis import ROOT
from analysis.results.tables.links import collect_fits
from analysis.results.tables.of_study import put_together, study_tables
from analysis.results.tables.rows import runs_text
from analysis.site.charts import study_charts
from analysis.site.charts.theme import Chart
from analysis.site.charts.writing import kept_engine
from analysis.site.check import Fault
from analysis.site.facts.inputs import Inputs, load_inputs
from analysis.site.facts.study_facts import StudyFacts
from analysis.site.pages.common import draw_all, write_samples
from analysis.site.pages.site import build_site
from analysis.study import Study, Variant, discover
from tests import synthetic
from tests.synthetic import Sample, samples_of


def make_root(folder: Path) -> Path:
    """A copy of the synthetic repository, with the looks of the real pages."""
    shutil.copytree(synthetic.ROOT, folder, dirs_exist_ok=True)
    shutil.copytree(ROOT / "docs" / "assets", folder / "docs" / "assets")
    shutil.copy(ROOT / "docs" / "mkdocs.yml", folder / "docs")
    return folder


def copy_of_repository(folder: Path) -> Path:
    """Inputs of the report from this repository, without results."""
    from tests.repository import copy_studies

    copy_studies(folder)
    for name in ("docs", "results/published"):
        shutil.copytree(ROOT / name, folder / name)
    return folder


def write_tables(results: Path, studies: Mapping[str, Study], out: Path) -> None:
    """Write the tables of all studies that the summary stage makes of `results` to `out`."""
    # tests/results/model/test_model.py tests the intervals, which take most of the time of a fit.
    with patch("analysis.results.model.fit.RESAMPLES", 10):
        fits = collect_fits(results, studies)
    of_studies = {name: study_tables(results, name, studies, fits) for name in studies}
    put_together(of_studies, fits, results, out)


def make_inputs(root: Path, studies: Mapping[str, Study] | None = None) -> Inputs:
    """Inputs of the report from the results under `root`, with the tables of the summary stage."""
    studies = discover(root) if studies is None else studies
    write_tables(root / "results", studies, root / "build")
    return load_inputs(root / "build", root / "results", studies)


def settled(inputs: Inputs) -> Inputs:
    """Inputs whose figures count as based on three runs on three hosts, whatever they are of: the
    runs of a time are its median and the ends of its interval."""
    known = inputs.tables
    enough: dict[str, Any] = {"runs": 3, "hosts": 3, "by_run": ""}
    times = known["summary"][["ci_low", "median", "ci_high"]].to_numpy()
    by_run = ["" if any(map(math.isnan, row)) else runs_text(row) for row in times]
    judging = known["claims"]["judging"].mask(known["claims"]["judging"] > 0, 3)
    return inputs.with_tables(
        summary=known["summary"].assign(**enough | {"by_run": by_run}),
        ratios=known["ratios"].assign(**enough),
        claims=known["claims"].assign(**enough, judging=judging, judging_hosts=judging),
        claim_parts=known["claim_parts"].assign(by_run="", hosts=3),
    )


def drawn_charts(facts: StudyFacts) -> dict[str, Chart]:
    """The charts of a study for which there is something to draw."""
    return {name: chart for name, chart in study_charts(facts).items() if chart is not None}


def keep_engine(build: Path) -> None:
    """Put the charts' engine, bundled once for all tests, where it is kept for a site."""
    kept = ROOT / "build" / "tests"
    with FileLock(kept / "engine.lock"):
        shutil.copy(kept_engine(kept), build)


def build(root: Path) -> Path:
    """The site of `root`."""
    draw_and_build(root, make_inputs(root))
    return root / "site"


def draw_and_build(root: Path, inputs: Inputs | None = None) -> list[Fault]:
    """Draw all charts of `root` from its tables, which `inputs` has read, and build its site."""
    tables, results, charts = (root / name for name in ("build", "results", "build/charts"))
    with draws_once():  # most charts of two sites are the same
        inputs = inputs or load_inputs(tables, results, discover(root))
        keep_engine(tables)
        draw_all(inputs, root / "docs", charts)
        write_samples(inputs, tables)
        return build_site(tables, results, charts, root / "site", root)


@contextmanager
def draws_once() -> Iterator[None]:
    """Meanwhile, no picture is drawn that this process has drawn before."""
    with patch("vl_convert.vegalite_to_svg", lambda *of, **more: drawn(json.dumps([of, more]))):
        yield


@cache
def drawn(arguments: str, draw: Callable[..., str] = vl_convert.vegalite_to_svg) -> str:
    """A picture, by its arguments as JSON."""
    of, more = json.loads(arguments)
    return draw(*of, **more)


def rows_without_value(study: Study, variant: Variant, status: str, reason: str) -> list[Sample]:
    return [
        replace(sample, value=None, verified=0, status=status, reason=reason)
        for sample in samples_of(study, variant, rounds=1)
    ]


def without_data(html: str) -> str:
    """`html` without what its figures say of themselves."""
    return re.sub(r"</?data\b[^>]*>", "", html)


def text_of(page: Path) -> str:
    """The page as words: no tags, white space collapsed."""
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page.read_text()))
