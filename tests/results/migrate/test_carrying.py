"""Only runs of the compared code are carried over."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from analysis import ROOT
from analysis.base.errors import HotpathError
from analysis.results.migrate.__main__ import Outcome, carry
from analysis.results.migrate.host_code import Different
from analysis.results.migrate.proof import (
    Code,
    checked_out,
    commit_named,
    fingerprints_at,
    prove,
)
from analysis.results.store.results import load_variant
from analysis.study import discover
from analysis.study.source import fingerprint
from analysis.toolchain.packages import PACKAGES
from tests.compiled import toolchain
from tests.editing import edit_json
from tests.results.store.runs import RUNS, store
from tests.synthetic import CALLS

NOW = fingerprint(CALLS, CALLS.variant("kernel"))
OLD, OTHER = "a" * 64, "c" * 64
PROOF = {"revision": "f" * 40, "compared": "module", "digest": "d" * 64, "cxx": "g++ 12.2.0"}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Three runs: of the compared code, of the current code, and of other code."""
    for run in RUNS[:3]:
        found = store(tmp_path, run)

    def hashes(document: dict[str, Any]) -> None:
        document["source_sha256"] = OLD
        document["captures"] = {
            "ncu": {"status": "captured", "source_sha256": OLD},
            "timeline": {"status": "captured", "source_sha256": OTHER},
        }
        for entry, digest in zip(document["runs"], (NOW, OTHER), strict=True):
            entry["source_sha256"] = digest

    edit_json(found.with_suffix(".json"), hashes)
    return found


def test_runs_of_the_code_that_was_compared_are_carried_over(path: Path) -> None:
    samples = path.read_bytes()
    outcome = Outcome()
    carry(path, OLD, NOW, PROOF, outcome)
    assert (outcome.carried, outcome.stale) == (1, 1)
    assert path.read_bytes() == samples
    loaded = load_variant(path)
    assert loaded.fresh_runs(NOW) == [RUNS[2], RUNS[1]]
    assert loaded.provenance["migrated"] == [{"from": OLD, "to": NOW, "proof": PROOF}]
    captures = loaded.provenance["captures"]
    assert captures["ncu"]["source_sha256"] == NOW
    assert captures["timeline"]["source_sha256"] == OTHER
    again = Outcome()
    carry(path, OLD, NOW, PROOF, again)
    assert (again.carried, again.stale) == (0, 1)


def test_the_proof_is_for_one_architecture(path: Path) -> None:
    def compiled_for(document: dict[str, Any]) -> None:
        document["compiler"] = {"nvcc": "13.0", "cxx": "g++", "arch": "sm_100", "flags": []}

    edit_json(path.with_suffix(".json"), compiled_for)
    carry(path, OLD, NOW, PROOF | {"arch": "sm_90"}, Outcome())
    assert load_variant(path).provenance["source_sha256"] == OLD
    carry(path, OLD, NOW, PROOF, Outcome())  # it has no kernel
    assert load_variant(path).provenance["source_sha256"] == NOW


@pytest.mark.parametrize(
    ("cxx", "compared", "expected"),
    [
        ("g++-real (Ubuntu 13.3.0) 13.3.0", "module", {("13.3.0", "12.2.0"): 1}),
        ("c++ (Debian 12.2.0) 12.2.0", "module", {}),
        ("g++-real (Ubuntu 13.3.0) 13.3.0", "syntax trees", {}),
        ("g++-real (Ubuntu 13.3.0) 13.3.0", "sources", {}),
    ],
)
def test_a_proof_by_another_compiler_is_counted(
    path: Path, cxx: str, compared: str, expected: dict[tuple[str, str], int]
) -> None:
    def compiled_by(document: dict[str, Any]) -> None:
        document["compiler"] = {"nvcc": "13.0", "cxx": cxx, "arch": "sm_90", "flags": []}

    edit_json(path.with_suffix(".json"), compiled_by)
    outcome = Outcome()
    carry(path, OLD, NOW, PROOF | {"compared": compared}, outcome)
    assert outcome.compilers == expected


def code(name: str, **changed: Any) -> Code:
    variant = replace(CALLS.variant(name), **changed)
    return Code(replace(CALLS, variants=(variant,)), variant, CALLS.folder.parents[1])


@pytest.mark.parametrize(
    "setting",
    [
        {"flags": ("-O1",)},
        {"constants": {"count": 9}},
        {"role": "ceiling"},
        {"host_work": True},
        {"options": {"memory": "pinned"}},
    ],
)
def test_another_setting_is_no_refactoring(setting: dict[str, Any]) -> None:
    """Nothing is compiled; a Python variant has no macros that options could set."""
    old, new = code("python"), code("python", **setting)
    with pytest.raises(Different, match=rf"^study\.yaml: {next(iter(setting))}: "):
        prove(old, new, toolchain(), "sm_90")


def test_compiling_without_a_package_proves_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(PACKAGES, "torch", replace(PACKAGES["torch"], module="not_installed_here"))
    old = code("compiled", needs=("torch",))
    new = code("compiled", needs=("torch",), options={"memory": "pinned"})
    with pytest.raises(Different, match="torch is not installed, and without it other code"):
        prove(old, new, toolchain(), "sm_90")


def test_invalid_revision_is_one_line() -> None:
    with pytest.raises(HotpathError, match=r"^revision: expected a commit .* got 'nowhere'$"):
        commit_named("nowhere")


def test_studies_of_a_revision_keep_their_hashes() -> None:
    with checked_out(commit_named("HEAD")) as root:
        then = discover(root)
        assert set(then) <= set(discover())
        allocator = then["fragmentation"].variant("p7_ordered")
        assert all(path.is_relative_to(root) and path.exists() for path in allocator.timed)


def test_hashes_of_a_revision_follow_the_rules_of_that_revision() -> None:
    rules = """
class Named:
    name = "only"
    variants = ()

Named.variants = (Named,)
def discover():
    return {"only": Named}
"""
    with checked_out(commit_named("HEAD")) as root:
        (root / "analysis" / "study" / "__init__.py").write_text(rules)
        (root / "analysis" / "source.py").write_text("def fingerprint(*of): return 'other rules'")
        assert fingerprints_at(root) == {("only", "only"): "other rules"}


def test_equal_sources_need_no_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    study = discover()["h2d_gather"]
    same = Code(study, study.variant("v3_loads_first"), ROOT)
    monkeypatch.setattr("analysis.results.migrate.proof.compile_object", None)
    proof = prove(same, same, toolchain(), "sm_90")
    assert proof["compared"] == "sources"
