"""Submissions from results: their runs, their figures, and no name of a host."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

from analysis.base.errors import FieldError
from analysis.results import submit
from analysis.results.store.collect import collect
from analysis.results.store.submission import SUBMISSION_LIMIT_BYTES
from analysis.results.store.submitted import checked
from analysis.results.submit import only_hosts, submission, to_text, with_reach, within_limit
from tests.repository import STUDIES as REAL_STUDIES
from tests.results.store.submissions import whole
from tests.synthetic import COPY, STUDIES, add_run, provenance_of, samples_of, write_machine

MACHINE = "copy-box"
RUNS = [f"2026-01-0{day}T00:00:00Z" for day in (2, 3, 4)]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four runs, each on another host; the oldest of one variant is stale."""
    root = tmp_path_factory.mktemp("results")
    write_machine(root, MACHINE, COPY, rounds=2)
    for run in RUNS:
        for variant in COPY.variants:
            if samples := samples_of(COPY, variant, run=run, rounds=2):
                provenance = provenance_of(COPY, variant, run=run)
                add_run(root, MACHINE, COPY.name, variant.name, samples, provenance)
    return root


def host_of(run: str) -> str:
    host: str = provenance_of(COPY, COPY.variants[0], run=run)["machine"]["host"]
    return host


def test_it_has_each_variant_in_its_shown_case_with_every_run(results: Path) -> None:
    content = submission(collect(results, STUDIES), STUDIES, MACHINE, "my-box")
    assert set(content["studies"][COPY.name]) == set(COPY.variant_names)
    for name, sent in content["studies"][COPY.name].items():
        assert sent["case"] == COPY.shown_case(COPY.variant(name)).id
        assert all(len(one["by_run"]) == one["hosts"] == 4 for one in sent["figures"].values())
    assert [one["host"] for one in content["runs"]] == [1, 2, 3, 4]
    sent = checked(with_reach(content, None), STUDIES, "here")
    assert sent.current == {(COPY.name, name) for name in COPY.variant_names}


def test_nothing_in_it_names_a_host(results: Path) -> None:
    found = collect(results, STUDIES)
    for entry in found.provenance.values():
        entry["machine"] |= {"kernel": "6.8.0-31-login01", "cpu": "node 0123456789ab"}
    text = to_text(submission(found, STUDIES, MACHINE, "my-box"))
    assert json.loads(text)["machine"]["kernel"] == "6.8.0"
    assert json.loads(text)["machine"]["cpu"] is None
    for hidden in ("login01", "0123456789ab", *map(host_of, RUNS)):
        assert hidden not in text


def test_runs_are_chosen_by_host(results: Path) -> None:
    two = [host_of(run) for run in RUNS[:2]]
    kept = only_hosts(collect(results, STUDIES), two, [])
    content = submission(kept, STUDIES, MACHINE, "my-box")
    assert [one["run"] for one in content["runs"]] == RUNS[:2]
    kept = only_hosts(collect(results, STUDIES), [], two)
    assert len(submission(kept, STUDIES, MACHINE, "my-box")["runs"]) == 2
    with pytest.raises(FieldError, match="host: expected one of"):
        only_hosts(collect(results, STUDIES), ["elsewhere"], [])


def test_the_same_results_give_the_same_file(results: Path) -> None:
    texts = {
        to_text(with_reach(submission(collect(results, STUDIES), STUDIES, MACHINE, "my-box"), None))
        for _ in range(2)
    }
    assert len(texts) == 1
    assert len(texts.pop()) < SUBMISSION_LIMIT_BYTES


def test_beyond_the_limit_only_compared_times_are_kept(results: Path) -> None:
    content = submission(collect(results, STUDIES), STUDIES, MACHINE, "my-box")
    for sent in content["studies"][COPY.name].values():
        sent["figures"]["rows_copied"] = sent["figures"]["gpu_time"] | {"unit": "1"}
    size = len(to_text(content))
    assert within_limit(content, STUDIES, size) == content
    shrunk = within_limit(content, STUDIES, size - 1)
    assert len(to_text(shrunk)) < size
    for name, sent in shrunk["studies"][COPY.name].items():
        assert set(sent["figures"]) <= set(COPY.metrics_for(COPY.variant(name)))
    checked(with_reach(shrunk, None), STUDIES, "here")


def test_results_of_other_code_are_not_sent(results: Path) -> None:
    found = collect(results, STUDIES)
    found.samples["stale"] = True
    with pytest.raises(FieldError, match=r"expected results of today's code, got None"):
        submission(found, STUDIES, MACHINE, "my-box")


def run_program(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> None:
    monkeypatch.setattr(sys, "argv", ["submit", *map(str, arguments)])
    submit.main()


def test_the_output_of_reach_alone_is_a_submission(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "reach.json"
    output.write_text(json.dumps(whole()["reach"]))
    run_program(monkeypatch, "--name", "my-gpu", "--reach", output, "--out", tmp_path)
    run_program(monkeypatch, "--check", tmp_path / "my-gpu.json")
    assert "my-gpu.json: accepted; 0 variants" in capsys.readouterr().out
    content = json.loads((tmp_path / "my-gpu.json").read_text())
    assert content["machine"]["gpu"] == "NVIDIA H200" and content["studies"] == {}


def test_a_check_prints_a_line_for_each_file_and_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = [tmp_path / "a.json", tmp_path / "b.json"]
    paths[0].write_text("{}")
    paths[1].write_text(json.dumps(whole("b")))
    with pytest.raises(Exception, match="got 1 with one"):
        run_program(monkeypatch, "--check", *paths)
    refused, accepted = capsys.readouterr().out.splitlines()
    assert refused.startswith(f"refused: {paths[0]}: format: expected a value")
    assert re.fullmatch(r".*/b.json: accepted; 1 variants are of today's code", accepted)
    assert set(REAL_STUDIES) > {"h2d_gather"}
