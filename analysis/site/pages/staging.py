"""The folder mkdocs builds from: pages, charts, downloads and the charts' engine."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from analysis.base.reading import read_bytes
from analysis.site.charts import study_charts
from analysis.site.charts.engine import ENGINE, write_engine
from analysis.site.charts.page_tables import write_page_tables
from analysis.site.charts.widgets import write_widgets
from analysis.site.charts.writing import INDEX, ChartSummary, read_index, write_charts
from analysis.site.facts.comparison import Comparison
from analysis.site.facts.inputs import Inputs, VariantKey
from analysis.site.facts.study_facts import StudyFacts
from analysis.site.interface import FILES, OFFERED
from analysis.site.pages.common import ALL, facts_of, write_common_charts
from analysis.study import Variant


@dataclass(frozen=True, repr=False)  # mkdocs-macros writes out all it is given: every table
class Staged:
    """Staged files: charts by study and name, None if there is nothing to draw, files in
    data/ by the variant and machine they are of, pages of studies. `groups` are the studies of each
    group of pages, `studies` all in their order. Charts about all studies are under ALL."""

    inputs: Inputs
    groups: Mapping[str, Sequence[str]]
    studies: Mapping[str, StudyFacts]
    charts: Mapping[str, Mapping[str, ChartSummary | None]]
    files: Mapping[VariantKey, list[str]]
    pages: Mapping[str, str]

    @cached_property
    def comparison(self) -> Comparison:
        """All machines side by side."""
        return Comparison(self.inputs, self.studies)


def stage(
    inputs: Inputs,
    groups: Mapping[str, Sequence[str]],
    pages: Path,
    tables: Path,
    folder: Path,
    drawn: Path | None = None,
) -> Staged:
    """Fill `folder` with the pages under `pages` and all they refer to; what was there goes.

    `groups` are all studies, by the group of pages that theirs is in. `drawn` has the charts of
    each of them, those about all studies, and their engine; left out, all are drawn now.
    """
    if folder.exists():
        shutil.rmtree(folder)
    shutil.copytree(pages, folder, ignore=shutil.ignore_patterns("mkdocs.yml"))
    studies = facts_of(inputs, groups)
    charts = {name: _stage_charts(facts, folder, drawn) for name, facts in studies.items()}
    if drawn is None:
        write_common_charts(inputs, studies, pages, folder / "charts")
        charts[ALL] = read_index(folder / "charts" / ALL)
        (folder / "charts" / ALL / INDEX).unlink()
    else:
        charts[ALL] = _copy_charts(drawn, ALL, folder)
    _stage_engine(folder / "assets", drawn)
    data = folder / "data"
    data.mkdir()
    for name in OFFERED:
        if (tables / name).exists():
            shutil.copy(tables / name, data / name)
        else:
            (data / name).write_text(",".join(FILES[name]) + "\n")
    samples = {key: _stage_samples(inputs, key, data) for key in inputs.provenance}
    return Staged(
        inputs=inputs,
        groups=groups,
        studies=studies,
        charts=charts,
        files=stage_sources(inputs, samples, data),
        pages={n: page for n in studies if (folder / (page := f"studies/{n}.md")).exists()},
    )


def _stage_charts(
    facts: StudyFacts, folder: Path, drawn: Path | None
) -> dict[str, ChartSummary | None]:
    name = facts.study.name
    target = folder / "charts" / name
    if drawn is None:
        names = facts.inputs.machine_names
        summaries = write_charts(study_charts(facts), target, name, names=names)
        write_widgets(facts, target)
        write_page_tables(facts, target)
        return summaries
    return _copy_charts(drawn, name, folder)


def _copy_charts(drawn: Path, group: str, folder: Path) -> dict[str, ChartSummary | None]:
    """Copy a group of charts without its index, which is returned."""
    target = folder / "charts" / group
    shutil.copytree(drawn / group, target, ignore=shutil.ignore_patterns(INDEX))
    return read_index(drawn / group)


def _stage_engine(assets: Path, drawn: Path | None) -> None:
    if drawn is None:
        write_engine(assets)
        return
    for name in ENGINE:
        shutil.copy(drawn / name, assets)


def _stage_samples(inputs: Inputs, key: VariantKey, data: Path) -> list[str]:
    """Copy all files of one variant on one machine; their names, the samples first."""
    machine, study, _ = key
    target = data / machine / study
    target.mkdir(parents=True, exist_ok=True)
    files = inputs.files(key)
    for file in files:
        (target / file.name).write_bytes(read_bytes(file))
    return [file.name for file in files]


def stage_sources(
    inputs: Inputs, files: Mapping[VariantKey, list[str]], data: Path
) -> dict[VariantKey, list[str]]:
    """Put the source of every variant with samples beside them; `files` with its name added.

    The copy is today's file. It begins with the commit measured, and its name says `changed` where
    the hash in the provenance is not today's.
    """
    staged = {}
    for key, names in files.items():
        machine, study, name = key
        known = inputs.studies.get(study)
        if known is None or name not in known.variant_names:
            staged[key] = names
            continue
        variant, is_current = known.variant(name), inputs.is_current(key)
        state = "source" if is_current else "source-changed"
        file = data / machine / study / f"{name}.{state}{variant.path.suffix}"
        origin = _origin(inputs.provenance[key], variant, is_current)
        file.write_text(origin + variant.path.read_text())
        staged[key] = [*names, file.name]
    return staged


def _origin(provenance: Mapping[str, Any], variant: Variant, is_current: bool) -> str:
    mark = "#" if variant.path.suffix == ".py" else "//"
    dirty = " with changes" if provenance.get("dirty") else ""
    changed = "stale: this file or one that it includes has changed since"
    since = "unchanged since" if is_current else changed
    return f"{mark} Measured at commit {provenance['commit'] or 'unknown'}{dirty}; {since}.\n"
