"""The tables of all committed results, for tests of what pages make of them."""

from __future__ import annotations

import pytest

from analysis import ROOT
from analysis.results.collect import Collected, collect
from analysis.results.tables.links import collect_fits
from analysis.results.tables.of_study import tables_of, to_csv
from analysis.site.facts.inputs import Inputs, load_inputs
from tests.repository import STUDIES


@pytest.fixture(scope="session")
def collected() -> Collected:
    return collect(ROOT / "results", STUDIES)


@pytest.fixture(scope="session")
def committed(collected: Collected, tmp_path_factory: pytest.TempPathFactory) -> Inputs:
    out = tmp_path_factory.mktemp("tables")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("analysis.results.model.fit.RESAMPLES", 10)  # intervals take most of the time
        fits = collect_fits(ROOT / "results", STUDIES)
    for name, table in tables_of(collected, STUDIES, fits).items():
        (out / f"{name}.csv").write_text(to_csv(name, table))
    return load_inputs(out, ROOT / "results", STUDIES)
