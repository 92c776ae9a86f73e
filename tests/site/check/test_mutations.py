"""Nothing goes missing without a word: where a part of the committed tree is gone, a page has the
same parts with other figures, or the publication check names what is missing."""

from __future__ import annotations

import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import lru_cache, wraps
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple
from unittest.mock import patch

import numpy as np
import pytest

from analysis import ROOT
from analysis.base.errors import HotpathError
from analysis.results.store.runs import add, codes_of, read_runs
from analysis.results.store.samples import Row, to_text
from analysis.site.charts import study_charts
from analysis.site.pages import page as pages
from tests.repository import STUDIES
from tests.roots import study_site

H100, H200 = "nvidia-h100-80gb-hbm3", "nvidia-h200"
PARTS: Final = re.compile(
    r' id="[^"]*"| data-figure="[^"]*"|<(?:h\d|tr|li|figure|details)\b|<td[^>]*>(?=[^<])'
)
"""What makes up a page: anchors, figures, headings, rows, cells that are not empty, list items."""


class Mutation(NamedTuple):
    """A part that is removed from a study: files below a copy of the repository change, or a
    function `within` a context gives less."""

    study: str
    change: Callable[[Path], object] = lambda root: None
    within: Callable[[], AbstractContextManager[Any]] = nullcontext


def without(study: str, file: str, pattern: str) -> Mutation:
    """Without the first text in a file that matches."""

    def change(root: Path) -> None:
        left, count = re.subn(pattern, "", (root / file).read_text(), count=1)
        assert count, f"{file} has no {pattern}"
        (root / file).write_text(left)

    return Mutation(study, change)


def on_page(study: str, pattern: str) -> Mutation:
    return without(study, f"docs/studies/{study}.md", pattern)


def claim(study: str, name: str) -> Mutation:
    pattern = rf"(?s)  - id: {name}\n.*?(?=\n  - id|\Z)"
    return without(study, f"kernels/{study}/study.yaml", pattern)


def results(study: str, machine: str) -> Mutation:
    """Without a study's results on a machine."""
    return Mutation(study, lambda root: shutil.rmtree(root / "results" / machine / study))


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


def variant(where: str) -> Mutation:
    return samples(where, lambda *_: True)


def case(where: str, part: str) -> Mutation:
    return samples(where, lambda row, *_: part in row.case)


def run(where: str, place: int) -> Mutation:
    return samples(where, lambda row, run, runs: runs[place : place + 1] == [run])


def a_round(where: str, number: int) -> Mutation:
    """Without one round of all older runs."""
    return samples(where, lambda row, run, runs: row.round == number and run != runs[0])


def column(study: str, name: str, field: str) -> Mutation:
    """Without the values in a column of a chart's data."""

    def emptied(facts: Any) -> Any:
        made = study_charts(facts)
        if facts.study.name == study:
            made[name].data[field] = np.nan  # type: ignore[union-attr]
        return made

    where = "analysis.site.charts.study_charts"
    return Mutation(study, within=lambda: patch(where, emptied))


def macro(study: str, name: str) -> Mutation:
    """With a macro that returns nothing."""

    @contextmanager
    def within() -> Iterator[None]:
        with patch.dict(pages.MACROS):
            original = pages.MACROS[name].__wrapped__  # type: ignore[attr-defined]
            pages.macro(name)(wraps(original)(lambda *_, **__: ""))
            yield

    return Mutation(study, within=within)


MUTATIONS: Final = {
    "a case": case(f"{H200}/counters/sharded_padded", "threads=8,work=0"),
    "a variant": variant(f"{H100}/counters/shared_atomic"),
    "a claim": claim("counters", "array_removes_contention"),
    "a chart's column": column("counters", "rate", "gain"),
    "a chart": on_page("counters", r"{{ chart\('rate'.*?\) }}"),
    "what a macro returns": macro("counters", "drawing"),
    "a run": run(f"{H200}/counters/shared_atomic", 3),
    "a round": a_round(f"{H100}/counters/sharded_padded", 1),
    "the opening": on_page("storage_fill", r"{{ lead\(\) }}"),
    "a study's results": results("rdma_write", H200),
}
"""One of each kind, in a small study."""
MORE: Final = {
    "phases, case": case(f"{H100}/phases/p4_final", "pattern=same_size"),
    "phases, claim": claim("phases", "storage_10k_at_first"),
    "phases, steps": on_page("phases", r"{{ variants\('step'\) }}"),
    "fragmentation, variant": variant(f"{H200}/fragmentation/p7_ordered"),
    "fragmentation, column": column("fragmentation", "kept", "over"),
    "fragmentation, run": run(f"{H100}/fragmentation/torch_caching", 2),
    "h2d_gather, calibration": results("link_calibration", H200)._replace(study="h2d_gather"),
    "h2d_gather, case": case(f"{H200}/h2d_gather/v2_warp_per_token", "bs=128"),
    "h2d_gather, predictions": macro("h2d_gather", "predictions"),
    "h2d_gather, column": column("h2d_gather", "steps", "rate"),
    "hot_set, variant": variant(f"{H100}/hot_set/table_spread"),
    "hot_set, table": on_page("hot_set", r"{{ study_table\('shares'\) }}"),
    "hot_set, round": a_round(f"{H200}/hot_set/v0_torch", 1),
    "link_calibration, column": column("link_calibration", "model", "residual"),
    "link_calibration, parameters": macro("link_calibration", "link_parameters"),
    "link_calibration, case": case(f"{H100}/link_calibration/copy_engine", "bytes=1048576"),
    "method, variant": variant(f"{H100}/method/empty_kernel"),
    "method, macro": macro("method", "metrics"),
    "peers, variant": variant("nvidia-h200-x2/peers/pulled"),
    "peers, chart": on_page("peers", r"{{ chart\('tier'.*?\) }}"),
    "pinning, case": case(f"{H200}/pinning/huge_pages", "mib=1024"),
    "pinning, chart": on_page("pinning", r"{{ chart\('chunk_sizes'.*?\) }}"),
    "pinning, run": run(f"{H200}/pinning/huge_pages", 1),
    "pool_gather, calibration": results("translation", H100)._replace(study="pool_gather"),
    "pool_gather, column": column("pool_gather", "layouts", "rate"),
    "pool_gather, claim": claim("pool_gather", "walks_bind_in_large_pool"),
    "pool_gather, evidence": on_page("pool_gather", r"{{ evidence\(.*?\) }}"),
    "rdma_write, variant": variant(f"{H200}/rdma_write/batched_posting"),
    "rdma_write, column": column("rdma_write", "scaling", "mpps"),
    "storage_fill, round": a_round(f"{H100}/storage_fill/vector_fill", 2),
    "training, case": case(f"{H200}/training/p7_ordered", "work=decoding"),
    "training, chart": on_page("training", r"{{ chart\('memory'.*?\) }}"),
    "transfers, variant": variant(f"{H100}/transfers/pinned_loop"),
    "transfers, table": on_page("transfers", r"{{ study_table\(.*?\) }}"),
    "translation, column": column("translation", "reach", "reads_per_us"),
    "translation, case": case(f"{H200}/translation/rows", "pool_mib=40960,row_bytes=656"),
    "unpack, claim": claim("unpack", "stream_creation"),
    "unpack, column": column("unpack", "parts", "us"),
}


@lru_cache
def whole(study: str) -> tuple[Counter[str], set[str]]:
    return built(Mutation(study))


def built(mutation: Mutation) -> tuple[Counter[str], set[str]]:
    """The parts of the page, and the faults. Which machine a figure is of depends on the runs."""
    with TemporaryDirectory() as folder, mutation.within():
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


@pytest.mark.parametrize(
    "mutation",
    [
        *(pytest.param(one, id=name) for name, one in MUTATIONS.items()),
        *(pytest.param(one, id=name, marks=pytest.mark.exhaustive) for name, one in MORE.items()),
    ],
)
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
