"""All committed results: their files, and what pages make of them."""

from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from analysis import ROOT
from analysis.results.collect import collect
from analysis.results.store import runs
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


@pytest.fixture(scope="module", autouse=True)
def every_file_is_read_once() -> Iterator[None]:
    read, codes = runs.read, cache(lambda name: runs.codes_of(STUDIES.get(name)))
    once = cache(lambda path, name: read(path, STUDIES.get(name), codes(name)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runs, "read", lambda path, *_, **__: once(path, path.parent.name))
        yield


def test_committed_runs_are_good_of_clean_commits_and_verified() -> None:
    refused: list[Exception] = []
    for folder in runs.study_folders(RESULTS, lambda _, error: refused.append(error)):
        for run in runs.read_runs(folder, None, lambda _, error: refused.append(error)):
            assert run.about.dirty is False and len(run.about.commit or "") == 40, run.about.run
            assert all(row.verified == (row.status == "ok") for row in run.rows), run.about.run
            assert (folder / f"{run.about.run}.csv").read_text() == to_text(run.rows)
    assert refused == []


def test_the_committed_results_have_no_gaps_and_shares_of_one_clock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("analysis.results.model.fit.RESAMPLES", 10)  # intervals take most time
    fits = collect_fits(RESULTS, STUDIES)
    for name, table in tables_of(collect(RESULTS, STUDIES), STUDIES, fits).items():
        (tmp_path / f"{name}.csv").write_text(to_csv(name, table))
    inputs, published = load_inputs(tmp_path, RESULTS, STUDIES), load_config().published
    assert fatal([*table_faults(inputs)], published, inputs) == []
    assert {*inputs.machines} <= {*published}
    all_facts = [StudyFacts(inputs, study) for study in STUDIES.values()]
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
