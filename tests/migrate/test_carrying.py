"""Runs of the code that was compared are carried over, and no others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from analysis.errors import HotpathError
from analysis.migrate.__main__ import Outcome, carry
from analysis.migrate.proof import checked_out, commit_named, studies_at
from analysis.source import fingerprint
from analysis.store.results import load_variant
from analysis.study import discover
from tests.editing import edit_json
from tests.store.runs import RUNS, store
from tests.synthetic import CALLS

NOW = fingerprint(CALLS, CALLS.variant("kernel"))
OLD, OTHER = "a" * 64, "c" * 64
PROOF = {"revision": "f" * 40, "compared": "module", "digest": "d" * 64}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Three runs: of the code that was compared, of today's, and of other code."""
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


def test_a_revision_that_is_none_is_one_line() -> None:
    with pytest.raises(HotpathError, match=r"^revision: expected a commit .* got 'nowhere'$"):
        commit_named("nowhere")


def test_the_studies_of_a_revision_are_hashed_as_they_were() -> None:
    with checked_out(commit_named("HEAD")) as root:
        then = studies_at(root)
        assert set(then) <= set(discover())
        allocator = then["fragmentation"].variant("p7_ordered")
        assert all(path.is_relative_to(root) and path.exists() for path in allocator.timed)
