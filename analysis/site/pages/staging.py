"""The folder mkdocs builds from: pages, charts, downloads and the charts' engine."""

from __future__ import annotations

import shutil
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from analysis import ROOT
from analysis.base.reading import read_bytes
from analysis.site.charts.engine import ENGINE
from analysis.site.charts.writing import INDEX, ChartSummary, read_index
from analysis.site.facts.comparison import Comparison
from analysis.site.facts.guarding import LEFT_OUT
from analysis.site.facts.inputs import Inputs, VariantKey
from analysis.site.facts.study_facts import StudyFacts
from analysis.site.interface import FILES, OFFERED
from analysis.site.pages.common import ALL, facts_of, write_samples
from analysis.site.pages.parquet import NAME as PARQUET


@dataclass(frozen=True, repr=False)  # mkdocs-macros writes out all it is given: every table
class Staged:
    """Staged files: charts by study and name, None if there is nothing to draw, names of sources in
    data/ by the variant and machine they are of, pages of studies. `groups` are the studies of each
    group of pages, `studies` all in their order. Charts about all studies are under ALL.
    `published` are the machines with results of which no figure may be missing."""

    inputs: Inputs
    groups: Mapping[str, Sequence[str]]
    studies: Mapping[str, StudyFacts]
    charts: Mapping[str, Mapping[str, ChartSummary | None]]
    sources: Mapping[VariantKey, str]
    pages: Mapping[str, str]
    published: Collection[str] = ()

    @cached_property
    def comparison(self) -> Comparison:
        """All machines side by side."""
        return Comparison(self.inputs, self.studies)


def stage(
    inputs: Inputs,
    groups: Mapping[str, Sequence[str]],
    pages: Path,
    tables: Path,
    drawn: Path,
    folder: Path,
    published: Collection[str] = (),
) -> Staged:
    """Fill `folder` with the pages under `pages` and all they refer to; what was there goes.

    `groups` are all studies, by the group of pages that theirs is in. `drawn` has the charts of
    each of them, those about all studies, and their engine.
    """
    if folder.exists():
        shutil.rmtree(folder)
    shutil.copytree(pages, folder, ignore=shutil.ignore_patterns("mkdocs.yml"))
    studies = facts_of(inputs, groups)
    for name in (*studies, ALL):
        ignored = shutil.ignore_patterns(INDEX, LEFT_OUT)
        shutil.copytree(drawn / name, folder / "charts" / name, ignore=ignored)
    for name in ENGINE:
        shutil.copy(drawn / name, folder / "assets")
    shutil.copy(ROOT / "LICENSE", folder / "LICENSE.txt")
    shutil.copy(ROOT / "CITATION.cff", folder)
    data = folder / "data"
    data.mkdir()
    for name in OFFERED:
        if (tables / name).exists():
            shutil.copy(tables / name, data / name)
        else:
            (data / name).write_text(",".join(FILES[name]) + "\n")
    if (tables / PARQUET).exists():
        shutil.copy(tables / PARQUET, data)
    else:
        write_samples(inputs, data)
    for machine, study in sorted({key[:2] for key in inputs.runs_of}):
        (data / machine / study).mkdir(parents=True)
        for file in inputs.files(machine, study):
            (data / machine / study / file.name).write_bytes(read_bytes(file))
    return Staged(
        inputs=inputs,
        groups=groups,
        studies=studies,
        charts={name: read_index(drawn / name) for name in (*studies, ALL)},
        sources=stage_sources(inputs, data),
        pages={n: page for n in studies if (folder / (page := f"studies/{n}.md")).exists()},
        published=[name for name in published if name in inputs.machines],
    )


def stage_sources(inputs: Inputs, data: Path) -> dict[VariantKey, str]:
    """Put the source of every measured variant beside the samples; the names of the copies.

    A copy is today's file. It begins with the commit measured, and its name says `changed` if no
    run is of today's code.
    """
    staged = {}
    for key, runs in inputs.runs_of.items():
        machine, study, name = key
        known = inputs.studies.get(study)
        if known is None or name not in known.variant_names:
            continue
        path, fresh = known.variant(name).path, inputs.fresh_runs(key)
        state = "source" if fresh else "source-changed"
        run = (fresh or runs)[-1]
        mark = "#" if path.suffix == ".py" else "//"
        dirty = " with changes" if run.dirty else ""
        stale = "stale: this file or one that it includes has changed since"
        since = "unchanged since" if fresh else stale
        file = data / machine / study / f"{name}.{state}{path.suffix}"
        origin = f"{mark} Measured at commit {run.commit or 'unknown'}{dirty}; {since}.\n"
        file.write_text(origin + path.read_text())
        staged[key] = file.name
    return staged
