"""The folder mkdocs builds from: pages, charts, downloads and the charts' engine."""

import shutil
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Final

from analysis import ROOT
from analysis.base.reading import read_bytes
from analysis.results.tables.rows import OFFERED
from analysis.site.charts.writing import ENGINE, INDEX, ChartSummary, read_index
from analysis.site.facts.guarding import LEFT_OUT
from analysis.site.facts.inputs import Inputs
from analysis.site.facts.study_facts import StudyFacts
from analysis.site.pages.navigation import STUDIES

ALL: Final = "all"
"""The group of charts about all studies."""
SAMPLES: Final = "samples.parquet"

Groups = Mapping[str, Sequence[str]]
"""All studies, by the group of pages that theirs is in."""


@dataclass(frozen=True, repr=False)
class Staged:
    """What macros give: `studies` are all in the order of `groups`, `pages` those with a page.
    Charts are by study, or ALL, and name, None if there is nothing to draw. `published` are the
    machines with results of which no figure may be missing."""

    inputs: Inputs
    groups: Groups
    studies: Mapping[str, StudyFacts]
    charts: Mapping[str, Mapping[str, ChartSummary | None]]
    drawn: Path
    pages: Collection[str]
    published: Collection[str] = ()


def facts_of(inputs: Inputs, groups: Groups) -> dict[str, StudyFacts]:
    """The studies of all `groups`, in their order."""
    names = chain(*groups.values())
    return {name: StudyFacts(inputs, inputs.studies[name]) for name in names}


def stage(
    inputs: Inputs,
    groups: Groups,
    pages: Path,
    tables: Path,
    drawn: Path,
    folder: Path,
    published: Collection[str] = (),
) -> Staged:
    """Fill `folder` with the pages under `pages` and all they refer to; what was there goes.

    `drawn` has the charts of each of the studies, those about all, and their engine.
    """
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(pages, folder, ignore=shutil.ignore_patterns("mkdocs.yml"))
    studies = facts_of(inputs, groups)
    for name in (*studies, ALL):
        ignored = shutil.ignore_patterns(INDEX, LEFT_OUT)
        shutil.copytree(drawn / name, folder / "charts" / name, ignore=ignored)
    shutil.copy(drawn / ENGINE, folder / "assets")
    shutil.copy(ROOT / "LICENSE", folder / "LICENSE.txt")
    shutil.copy(ROOT / "CITATION.cff", folder)
    data = folder / "data"
    data.mkdir()
    for name in (*(f"{table}.csv" for table in OFFERED), SAMPLES):
        shutil.copy(tables / name, data)
    for machine, study in sorted({key[:2] for key in inputs.runs_of}):
        (data / machine / study).mkdir(parents=True)
        for file in inputs.files(machine, study):
            (data / machine / study / file.name).write_bytes(read_bytes(file))
    return Staged(
        inputs=inputs,
        groups=groups,
        studies=studies,
        charts={name: read_index(drawn / name) for name in (*studies, ALL)},
        drawn=drawn,
        pages=[name for name in studies if (pages / STUDIES / f"{name}.md").exists()],
        published=[name for name in published if name in inputs.machines],
    )
