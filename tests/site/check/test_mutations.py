"""Nothing goes missing without a word: where a part of the committed tree is gone, a page has the
same parts with other figures, or the publication check names what is missing."""

from __future__ import annotations

import re
import shutil
from collections import Counter
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple

import pytest

from analysis import ROOT
from analysis.base.errors import HotpathError
from analysis.results.store.runs import add, codes_of, read_runs
from analysis.results.store.samples import Row, to_text
from tests.repository import STUDIES
from tests.roots import study_site

H100, H200 = "nvidia-h100-80gb-hbm3", "nvidia-h200"
PARTS: Final = re.compile(
    r' id="[^"]*"| data-figure="[^"]*"|<(?:h\d|tr|li|figure|details)\b|<td[^>]*>(?=[^<])'
)
"""What makes up a page: anchors, figures, headings, rows, cells that are not empty, list items."""


class Mutation(NamedTuple):
    """A part that is removed from a study: files below a copy of the repository `change`."""

    study: str
    change: Callable[[Path], object] = lambda root: None


def without(study: str, file: str, pattern: str) -> Mutation:
    """Without the first text in a file that matches."""

    def change(root: Path) -> None:
        left, count = re.subn(pattern, "", (root / file).read_text(), count=1)
        assert count, f"{file} has no {pattern}"
        (root / file).write_text(left)

    return Mutation(study, change)


def without_results(root: Path, study: str) -> None:
    shutil.rmtree(root / "results" / H200 / study)


def samples(where: str, is_gone: Callable[[Row, str, list[str]], bool]) -> Mutation:
    """Without rows of a variant, by the row, its run, and all runs, newest first."""
    machine, study, variant = where.split("/")

    def change(root: Path) -> None:
        folder = root / "results" / machine / study
        runs = list(read_runs(folder, None))
        names = [run.about.run for run in runs]
        for run in runs:
            kept = [
                row
                for row in run.rows
                if row.variant != variant or not is_gone(row, run.about.run, names)
            ]
            of_variants = {row.variant for row in kept}
            variants = {v: one for v, one in run.about.variants.items() if v in of_variants}
            for path in folder.glob(f"{run.about.run}*"):
                path.unlink()
            if kept:
                about = run.about.model_copy(update={"variants": variants})
                add(folder, about, {f"{about.run}.csv": to_text(kept)})

    return Mutation(study, change)


MUTATIONS: Final = {
    "a case": samples(
        f"{H200}/counters/sharded_padded", lambda row, *_: "threads=8,work=0" in row.case
    ),
    "a variant": samples(f"{H100}/counters/shared_atomic", lambda *_: True),
    "a claim": without(
        "counters",
        "kernels/counters/study.yaml",
        r"(?s)  - id: array_removes_contention\n.*?(?=\n  - id|\Z)",
    ),
    "a chart": without("pool_gather", "docs/studies/pool_gather.md", r"(?s){{ chart\(.*?\) }}"),
    "the evidence": without("counters", "docs/studies/counters.md", r"(?s){{ evidence\(.*?\) }}"),
    "a run": samples(f"{H200}/counters/shared_atomic", lambda row, run, runs: runs[3:4] == [run]),
    "a round": samples(
        f"{H100}/counters/sharded_padded",
        lambda row, run, runs: row.round == 1 and run != runs[0],
    ),
    "a study's results": Mutation("rdma_write", lambda root: without_results(root, "rdma_write")),
    "a calibration": Mutation("h2d_gather", lambda root: without_results(root, "link_calibration")),
}
"""One of each kind."""


@lru_cache
def whole(study: str) -> tuple[Counter[str], set[str]]:
    return built(Mutation(study))


def built(mutation: Mutation) -> tuple[Counter[str], set[str]]:
    """The parts of the page, and the faults. Which machine a figure is of depends on the runs."""
    with TemporaryDirectory() as folder:
        page, faults = study_site(Path(folder), mutation.study, mutation.change)
    page = re.sub(r'(data-figure=")\S+', r"\1", page)
    return Counter(PARTS.findall(page)), faults


@lru_cache
def is_fresh(study: str) -> bool:
    """Whether all committed results of a study are of its code today."""
    codes = codes_of(STUDIES[study])
    return all(
        run.about.is_fresh(name, codes.get(name))
        for folder in (ROOT / "results").glob(f"*/{study}")
        for run in read_runs(folder, None)
        for name in run.about.variants
    )


@pytest.mark.parametrize("mutation", MUTATIONS.values(), ids=MUTATIONS)
def test_what_is_gone_is_named_or_changes_only_figures(mutation: Mutation) -> None:
    if not is_fresh(mutation.study):
        pytest.skip("the committed results are of other code")
    parts, faults = whole(mutation.study)
    try:
        left, found = built(mutation)
    except HotpathError as error:  # the build stops
        found = faults | {str(error)}
    named = [line for line in found - faults if mutation.study in line]
    assert named or left == parts
