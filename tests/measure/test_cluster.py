"""Machines of a cluster, without a cluster: their trees, and the merge of their results."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from analysis.base.errors import FieldError
from analysis.measure import cluster
from analysis.study.config import Config, Machine, load_config
from tests.measure.studies import contents
from tests.synthetic import CALLS, RUN, edit_run, files_of, name_of, write_machine

LATER = "2026-02-02T03:04:05Z"


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Config:
    """Configuration of a repository in a separate folder, with one machine and one study."""
    monkeypatch.setattr(cluster, "ROOT", tmp_path)
    monkeypatch.setattr(cluster, "BUILD", tmp_path / "build")
    monkeypatch.setattr(Config, "results", tmp_path / "results")
    settings = replace(load_config(), studies={CALLS.name: CALLS})
    return replace(settings, machines=(Machine(name="box", runs=2),))


def runs(root: Path) -> list[str]:
    return [path.stem for path in files_of(root, "box", "calls")]


def test_tree_has_the_current_sources_and_keeps_its_build(tmp_path: Path, config: Config) -> None:
    del config
    for name in ("Snakefile", "kernels/a.cu", "results/box/x.csv", "build/a.so", ".git/HEAD"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    (tmp_path / "profiles").symlink_to("workflow/profiles")
    tree = cluster.tree_of("box", 1)
    cluster.copy_sources(tree)
    (tree / "build").mkdir()
    (tree / "build" / "old.so").touch()
    (tmp_path / "kernels" / "a.cu").rename(tmp_path / "kernels" / "b.cu")
    cluster.copy_sources(tree)
    found = {path.relative_to(tree).as_posix() for path in tree.rglob("*") if not path.is_dir()}
    assert found == {"Snakefile", "kernels/b.cu", "profiles", "build/old.so"}


def test_a_run_starts_with_the_results_that_are_good(tmp_path: Path, config: Config) -> None:
    for began in (RUN, LATER):
        write_machine(tmp_path / "results", "box", CALLS, rounds=2, run=began)
    bad, good = files_of(tmp_path / "results", "box", "calls")
    bad.write_text("")
    shutil.copytree(good.parent, good.parent.with_name("Calls"))
    cluster.take_over(config, "box", 1)
    assert runs(cluster.tree_of("box", 1) / "results") == [good.stem]


def test_a_run_that_was_not_measured_is_nothing_new(tmp_path: Path, config: Config) -> None:
    write_machine(cluster.tree_of("box", 2) / "results", "box", CALLS, rounds=2)
    assert list(cluster.merge(config, "box")) == [
        "box: run 1: nothing new",
        f"box: run 2: calls/{name_of(RUN)}.json",
    ]
    assert runs(tmp_path / "results") == [name_of(RUN)]


def test_the_runs_of_nodes_become_one_machine_and_come_once(tmp_path: Path, config: Config) -> None:
    for run, began in ((1, RUN), (2, LATER)):
        write_machine(cluster.tree_of("box", run) / "results", "box", CALLS, rounds=2, run=began)
    assert list(cluster.merge(config, "box")) == [
        f"box: run 1: calls/{name_of(RUN)}.json",
        f"box: run 2: calls/{name_of(LATER)}.json",
    ]
    before = contents(tmp_path / "results")
    assert runs(tmp_path / "results") == [name_of(RUN), name_of(LATER)]
    assert list(cluster.merge(config, "box")) == [f"box: run {n}: nothing new" for n in (1, 2)]
    assert contents(tmp_path / "results") == before
    with pytest.raises(FieldError, match=r"machine: expected one of \['box'\], got 'other'"):
        list(cluster.merge(config, "other"))


def test_a_node_of_another_kind_is_not_merged(tmp_path: Path, config: Config) -> None:
    for run, began in ((1, RUN), (2, LATER)):
        write_machine(cluster.tree_of("box", run) / "results", "box", CALLS, rounds=2, run=began)
    (path,) = files_of(cluster.tree_of("box", 2) / "results", "box", "calls")
    edit_run(path.with_suffix(".json"), lambda run: run["host"]["gpus"][0].update(sms=114))
    with pytest.raises(FieldError, match="sms: expected 132 as in"):
        list(cluster.merge(config, "box"))
    assert runs(tmp_path / "results") == [name_of(RUN)]


def test_machine_missing_from_the_configuration_is_not_measured(
    tmp_path: Path, config: Config
) -> None:
    with pytest.raises(FieldError, match=r"machine: expected one of \['box'\], got 'other'"):
        cluster.measure(config, {}, "other", 1)
    assert not (tmp_path / "build").exists()


@pytest.mark.parametrize(("gpus", "expected"), [(0, None), (1, [0]), (2, [0, 1])])
def test_the_gpus_that_were_asked_for_are_measured_and_no_others(
    config: Config, monkeypatch: pytest.MonkeyPatch, gpus: int, expected: list[int] | None
) -> None:
    done = SimpleNamespace(returncode=0)
    monkeypatch.setattr("analysis.measure.cluster.subprocess.run", lambda *_, **__: done)
    monkeypatch.setattr("analysis.measure.cluster._environment", dict)
    asked = replace(config, machines=(Machine(name="box", gpus=gpus),))
    cluster.measure(asked, {"grid": "full"}, "box", 1)
    settings = json.loads((cluster.tree_of("box", 1) / "build" / "settings.json").read_text())
    assert settings.pop("gpu", None) == expected
    assert settings == {"grid": "full", "machine": "box", "machines": [], "runs": 1}


@pytest.mark.parametrize(
    ("machines", "message"),
    [
        ([{"name": "a"}, {"name": "a"}], "machines: expected names that differ"),
        ([{"name": "published"}], "machines.published.name: expected anything but 'published'"),
        ([{"name": "a", "gpu": 1}], "machines.a.gpu: expected no such key"),
        ([{"name": "a", "runs": 0}], "machines.a.runs: expected a number of at least 1"),
    ],
)
def test_a_fault_in_a_machine_is_one_error(machines: list[object], message: str) -> None:
    with pytest.raises(FieldError, match=message):
        load_config({"machines": machines})
