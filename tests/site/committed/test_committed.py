"""All committed results: their files, and what pages make of them."""

from functools import partial
from itertools import islice
from pathlib import Path

import pytest

from analysis import ROOT
from analysis.results.collect import collect
from analysis.results.store import runs
from analysis.results.store.keys import RunFile
from analysis.results.store.samples import to_text
from analysis.results.tables.links import collect_fits
from analysis.results.tables.of_study import tables_of, to_csv
from analysis.site.check import fatal
from analysis.site.check.tables import table_faults
from analysis.site.facts.basis import is_headline
from analysis.site.facts.inputs import load_inputs
from analysis.site.facts.journeys import journey_of
from analysis.site.facts.study_facts import StudyFacts
from analysis.study.config import load_config
from tests.repository import STUDIES

RESULTS = ROOT / "results"


SAMPLED = ("h2d_gather", "link_calibration", "unpack")
"""Studies of which tables are made without --long: with links and with a journey's shares. The
build of the site stops at a gap in any study."""


@pytest.fixture
def is_long(pytestconfig: pytest.Config) -> bool:
    return bool(pytestconfig.getoption("--long"))


def test_committed_runs_are_good_of_clean_commits_and_verified(is_long: bool) -> None:
    """The descriptions of all runs, and the rows of each study's newest: none changes later."""
    refused: list[Exception] = []
    for folder in runs.study_folders(RESULTS, lambda _, error: refused.append(error)):
        for about in map(partial(runs.read_about, kind=RunFile), runs.described(folder)):
            assert about.dirty is False and len(about.commit or "") == 40, about.run
        found = runs.read_runs(folder, None, lambda _, error: refused.append(error))
        for run in found if is_long else islice(found, 1):
            assert all(row.verified == (row.status == "ok") for row in run.rows), run.about.run
            assert (folder / f"{run.about.run}.csv").read_text() == to_text(run.rows)
    assert refused == []


def test_the_committed_results_have_no_gaps_and_shares_of_one_clock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_long: bool
) -> None:
    studies = {name: STUDIES[name] for name in (STUDIES if is_long else SAMPLED)}
    monkeypatch.setattr("analysis.results.model.fit.RESAMPLES", 10)  # intervals take most time
    fits = collect_fits(RESULTS, studies)
    for name, table in tables_of(collect(RESULTS, studies, [*studies]), studies, fits).items():
        (tmp_path / f"{name}.csv").write_text(to_csv(name, table))
    inputs, published = load_inputs(tmp_path, RESULTS, studies), load_config().published
    assert fatal([*table_faults(inputs)], published, inputs) == []
    assert {*inputs.machines} <= {*published}
    all_facts = [StudyFacts(inputs, study) for study in studies.values()]
    for facts, journey in ((facts, journey_of(facts)) for facts in all_facts):
        if journey is None:
            continue
        assert journey.metric in facts.study.metrics_for(*journey.times)
        assert bool(journey.shares) == (journey.limit is not None)
        for variant, share in journey.shares.items():
            row = facts.metric(journey.machine, variant, journey.metric)
            assert row is not None and is_headline(row)
            if journey.limit and journey.limit.variant in facts.study.variants:
                place = journey.machine, variant, journey.limit.variant, journey.metric
                ratio = facts.ratio(*place)
                assert ratio is not None and ratio.ratio == share
