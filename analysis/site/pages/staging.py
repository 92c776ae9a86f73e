"""The folder mkdocs builds from: pages, charts, downloads and the charts' engine."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from analysis.base.reading import read_bytes
from analysis.site.charts import draw_study
from analysis.site.charts.engine import ENGINE, write_engine
from analysis.site.charts.page_tables import write_page_tables
from analysis.site.charts.widgets import write_widgets
from analysis.site.charts.writing import INDEX, ChartSummary, read_index
from analysis.site.facts.comparison import Comparison
from analysis.site.facts.guarding import LEFT_OUT, guarded
from analysis.site.facts.inputs import Inputs, RunFile, VariantKey
from analysis.site.facts.study_facts import StudyFacts
from analysis.site.interface import FILES, OFFERED
from analysis.site.pages.common import ALL, FIGURES, facts_of, write_common_charts
from analysis.study import Variant


@dataclass(frozen=True, repr=False)  # mkdocs-macros writes out all it is given: every table
class Staged:
    """Staged files: charts by study and name, None if there is nothing to draw, names of sources in
    data/ by the variant and machine they are of, pages of studies. `groups` are the studies of each
    group of pages, `studies` all in their order. Charts about all studies are under ALL."""

    inputs: Inputs
    groups: Mapping[str, Sequence[str]]
    studies: Mapping[str, StudyFacts]
    charts: Mapping[str, Mapping[str, ChartSummary | None]]
    sources: Mapping[VariantKey, str]
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
    charts: dict[str, Mapping[str, ChartSummary | None]] = {}
    for name in facts_of(inputs, groups):

        def staged(known: Inputs, name: str = name) -> Mapping[str, ChartSummary | None]:
            return _stage_charts(StudyFacts(known, known.studies[name]), folder, drawn)

        charts[name], inputs = guarded(inputs, staged, FIGURES, name)
    studies = facts_of(inputs, groups)
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
    _stage_files(inputs, data)
    return Staged(
        inputs=inputs,
        groups=groups,
        studies=studies,
        charts=charts,
        sources=stage_sources(inputs, data),
        pages={n: page for n in studies if (folder / (page := f"studies/{n}.md")).exists()},
    )


def _stage_charts(
    facts: StudyFacts, folder: Path, drawn: Path | None
) -> dict[str, ChartSummary | None]:
    name = facts.study.name
    target = folder / "charts" / name
    if drawn is None:
        summaries = draw_study(facts, target)
        write_widgets(facts, target)
        write_page_tables(facts, target)
        return summaries
    return _copy_charts(drawn, name, folder)


def _copy_charts(drawn: Path, group: str, folder: Path) -> dict[str, ChartSummary | None]:
    """Copy a group of charts without its index, which is returned."""
    target = folder / "charts" / group
    shutil.copytree(drawn / group, target, ignore=shutil.ignore_patterns(INDEX, LEFT_OUT))
    return read_index(drawn / group)


def _stage_engine(assets: Path, drawn: Path | None) -> None:
    if drawn is None:
        write_engine(assets)
        return
    for name in ENGINE:
        shutil.copy(drawn / name, assets)


def _stage_files(inputs: Inputs, data: Path) -> None:
    """Copy the files of all runs and captures."""
    for machine, study in sorted({key[:2] for key in inputs.runs_of}):
        target = data / machine / study
        target.mkdir(parents=True, exist_ok=True)
        for file in inputs.files(machine, study):
            (target / file.name).write_bytes(read_bytes(file))


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
        variant, fresh = known.variant(name), inputs.fresh_runs(key)
        state = "source" if fresh else "source-changed"
        file = data / machine / study / f"{name}.{state}{variant.path.suffix}"
        origin = _origin((fresh or runs)[-1], variant, is_current=bool(fresh))
        file.write_text(origin + variant.path.read_text())
        staged[key] = file.name
    return staged


def _origin(run: RunFile, variant: Variant, *, is_current: bool) -> str:
    mark = "#" if variant.path.suffix == ".py" else "//"
    dirty = " with changes" if run.dirty else ""
    changed = "stale: this file or one that it includes has changed since"
    since = "unchanged since" if is_current else changed
    return f"{mark} Measured at commit {run.commit or 'unknown'}{dirty}; {since}.\n"
