"""Nothing goes missing without a word: where a part of the committed tree is gone, a page differs
only in numbers, or the publication check names what is missing."""

from __future__ import annotations

import functools
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any, Final, NamedTuple
from unittest.mock import patch

import numpy as np

from analysis import ROOT
from analysis.results.store.provenance import provenance_text
from analysis.results.store.results import load_variant
from analysis.results.store.samples import Sample, text_checksum, to_text
from analysis.site.charts import study_charts
from analysis.site.pages import page as macros
from analysis.site.pages.site import build_site
from analysis.study import calibrating, discover
from tests.roots import copy_of_repository, drawing_once, text_of, write_tables

H100, H200 = "nvidia-h100-80gb-hbm3", "nvidia-h200"
NUMBER: Final = re.compile(r"[-−]?\d[\d.,]*(e-?\d+)?( ?[kMGµmn]?(s|B|B/s|iB)\b)?")
Change = Callable[[Path], None]


class Mutation(NamedTuple):
    """What is gone: files below a copy of the repository, or what a function gives."""

    study: str
    what: str
    change: Change = lambda root: None
    within: Callable[[], AbstractContextManager[Any]] = nullcontext


def text(study: str, file: str, old: str) -> Mutation:
    """Without the first text in a file that matches `old`."""

    def change(root: Path) -> None:
        left, count = re.subn(old, "", (root / file).read_text(), count=1)
        assert count, f"{file} has no {old}"
        (root / file).write_text(left)

    return Mutation(study, f"{old[:40]} in {file}", change)


def page(study: str, old: str) -> Mutation:
    return text(study, f"docs/studies/{study}.md", old)


def claim(study: str, name: str) -> Mutation:
    return text(study, f"kernels/{study}/study.yaml", rf"(?s)  - id: {name}\n.*?(?=\n  - id|\Z)")


def files(study: str, pattern: str) -> Mutation:
    """Without these files of results, such as those of a variant or of a study on a machine."""

    def change(root: Path) -> None:
        for path in (root / "results").glob(pattern):
            shutil.rmtree(path) if path.is_dir() else path.unlink()

    return Mutation(study, pattern, change)


def samples(where: str, what: str, is_gone: Callable[[Sample, list[str]], bool]) -> Mutation:
    """Without samples of a variant, by the sample and the variant's runs, newest first."""

    def change(root: Path) -> None:
        path = root / "results" / f"{where}.csv"
        loaded = load_variant(path)
        runs = list(loaded.run_provenance())
        left = [one for one in loaded.samples if not is_gone(one, runs)]
        kept = [run for run in loaded.provenance["runs"] if run["run"] in {s.run for s in left}]
        document = {
            **loaded.provenance,
            "runs": kept,
            "samples_sha256": text_checksum(to_text(left)),
        }
        path.write_text(to_text(left))
        path.with_suffix(".json").write_text(provenance_text(document))

    return Mutation(where.split("/")[1], f"{what} of {where}", change)


def case(where: str, id: str) -> Mutation:
    return samples(where, id, lambda sample, _: sample.case == id)


def run(where: str, place: int) -> Mutation:
    return samples(where, f"run {place}", lambda sample, runs: sample.run == runs[place])


def round_share(where: str, number: int) -> Mutation:
    """Without one round of all older runs."""
    return samples(
        where, f"round {number}", lambda one, runs: one.round == number and one.run != runs[0]
    )


def column(study: str, name: str, field: str) -> Mutation:
    """Without the values in a column of a chart's data."""

    def emptied(facts: Any) -> Any:
        made = study_charts(facts)
        if facts.study.name == study:
            made[name].data[field] = np.nan  # type: ignore[union-attr]
        return made

    where = "analysis.site.pages.staging.study_charts"
    return Mutation(study, f"{field} of chart {name}", within=lambda: patch(where, emptied))


def macro(study: str, name: str) -> Mutation:
    """With a macro that returns nothing."""

    @contextmanager
    def within() -> Iterator[None]:
        with patch.dict(macros.MACROS):
            original = macros.MACROS[name].__wrapped__  # type: ignore[attr-defined]
            macros.macro(name)(functools.wraps(original)(lambda *_, **__: ""))
            yield

    return Mutation(study, f"what {name} returns", within=within)


def built(folder: Path, mutation: Mutation) -> tuple[str, set[str]]:
    """The page of the mutation's study without its numbers, and the faults of the site. Of other
    studies there are only headings, and results of those that the page names."""
    root = copy_of_repository(folder)
    own = root / "docs" / "studies" / f"{mutation.study}.md"
    for other in {*(root / "docs").rglob("*.md")} - {own}:
        other.write_text("\n\n".join(re.findall(r"^#+ .*", other.read_text(), re.MULTILINE)))
    shutil.copy(ROOT / "docs" / "glossary.md", root / "docs")
    studies = discover(root)
    names = {mutation.study, *re.findall(r"study='(\w+)'", own.read_text())}
    names |= {*calibrating(studies)} if any(studies[name].has_link for name in names) else set()
    for machine in (H100, H200):
        for name in (*sorted(names), "machine.json"):
            source, target = ROOT / "results" / machine / name, root / "results" / machine / name
            shutil.copytree(source, target) if source.is_dir() else shutil.copy(source, target)
    mutation.change(root)
    with mutation.within(), drawing_once(), patch("analysis.results.model.fit.RESAMPLES", 2):
        studies = {name: study for name, study in discover(root).items() if name in names}
        write_tables(root / "results", studies, root / "build")
        faults = build_site(root / "build", root / "results", root / "site", root)
    words = text_of(root / "site" / "studies" / mutation.study / "index.html")
    return NUMBER.sub("#", words), set(map(str, faults))
