"""The folder mkdocs builds from: pages, charts, downloads and the charts' engine."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import altair as alt
import pandas as pd
import vl_convert

from analysis.charts import study_charts
from analysis.charts.links import links_chart
from analysis.charts.machines import machines_chart
from analysis.charts.theme import Chart, palettes
from analysis.charts.writing import write_chart
from analysis.facts.comparison import Comparison
from analysis.facts.inputs import Inputs, VariantKey
from analysis.facts.links import link_rates
from analysis.facts.study_facts import StudyFacts
from analysis.reading import read_bytes
from analysis.report.sources import stage_sources

TABLES = (
    *("summary.csv", "ratios.csv", "skipped.csv", "claims.csv", "claim_parts.csv"),
    *("model.csv", "model_parameters.csv"),
)

ALL = "all"
"""The group of charts that are of no one study."""


@dataclass(frozen=True)
class StagedChart:
    """What a chart is of, and its figures in words."""

    description: str
    text: str


@dataclass(frozen=True, repr=False)  # mkdocs-macros writes out all it is given: every table
class Staged:
    """What was put where: charts by study and name, None where there is nothing to draw, files in
    data/ by the variant and machine they are of, pages of studies. `groups` are the studies of each
    group of pages, `studies` all in their order. Charts of no one study are under ALL."""

    inputs: Inputs
    groups: Mapping[str, Sequence[str]]
    studies: Mapping[str, StudyFacts]
    charts: Mapping[str, Mapping[str, StagedChart | None]]
    files: Mapping[VariantKey, list[str]]
    pages: Mapping[str, str]

    @cached_property
    def comparison(self) -> Comparison:
        """All machines side by side."""
        return Comparison(self.inputs, self.studies)


def stage(
    inputs: Inputs, groups: Mapping[str, Sequence[str]], pages: Path, tables: Path, folder: Path
) -> Staged:
    """Fill `folder` with the pages under `pages` and all they refer to; what was there goes.

    `groups` are all studies, by the group of pages that theirs is in."""
    if folder.exists():
        shutil.rmtree(folder)
    shutil.copytree(pages, folder, ignore=shutil.ignore_patterns("mkdocs.yml"))
    studies = {
        name: StudyFacts(inputs, inputs.studies[name])
        for names in groups.values()
        for name in names
    }
    charts = {
        name: _stage_charts(study_charts(facts), folder, name) for name, facts in studies.items()
    }
    common = {
        "machines": machines_chart(Comparison(inputs, studies)),
        "links": links_chart(link_rates(studies)),
    }
    charts[ALL] = _stage_charts(common, folder, ALL)
    _stage_engine(folder / "assets")
    data = folder / "data"
    data.mkdir()
    for name in TABLES:
        if (tables / name).exists():
            shutil.copy(tables / name, data / name)
        else:
            _empty_table(inputs, name).to_csv(data / name, index=False)
    samples = {key: _stage_samples(inputs, key, data) for key in inputs.provenance}
    return Staged(
        inputs=inputs,
        groups=groups,
        studies=studies,
        charts=charts,
        files=stage_sources(inputs, samples, data),
        pages={name: f"studies/{name}.md" for name in studies if _has_page(folder, name)},
    )


def _has_page(folder: Path, study: str) -> bool:
    return (folder / "studies" / f"{study}.md").exists()


def _stage_charts(
    charts: Mapping[str, Chart | None], folder: Path, group: str
) -> dict[str, StagedChart | None]:
    address = f"charts/{group}"
    return {
        name: None if chart is None else _stage_chart(chart, name, folder, address)
        for name, chart in charts.items()
    }


def _stage_chart(chart: Chart, name: str, folder: Path, address: str) -> StagedChart:
    return StagedChart(
        description=str(chart.description),  # type: ignore[attr-defined]
        text=write_chart(chart, folder / address, name, address).text,
    )


def _stage_engine(assets: Path) -> None:
    """Vega as a script of this site, and the palettes."""
    version = ".".join(alt.SCHEMA_VERSION.removeprefix("v").split(".")[:2])
    bundle = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;", vl_version=version)
    (assets / "vega.js").write_text(bundle)
    (assets / "palettes.json").write_text(json.dumps(palettes()))


def _empty_table(inputs: Inputs, name: str) -> pd.DataFrame:
    table: pd.DataFrame = getattr(inputs, name.removesuffix(".csv"))
    return table.drop(columns="run", errors="ignore")


def _stage_samples(inputs: Inputs, key: VariantKey, data: Path) -> list[str]:
    """Copy all files of one variant on one machine; their names, the samples first."""
    machine, study, _ = key
    target = data / machine / study
    target.mkdir(parents=True, exist_ok=True)
    files = inputs.files(key)
    for file in files:
        (target / file.name).write_bytes(read_bytes(file))
    return [file.name for file in files]
