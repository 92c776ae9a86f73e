"""Results are carried over a new way of hashing where the old one still matches, and only there."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from analysis import migrate
from analysis.migrate import Migration
from analysis.source import fingerprint
from analysis.store.results import load_variant
from analysis.study import Study, Variant
from tests.editing import edit_json
from tests.store.runs import RUNS, store
from tests.synthetic import CALLS, STUDIES

KERNEL = CALLS.variant("kernel")
NOW = fingerprint(CALLS, KERNEL)
OLD, OLDEST, OTHER = "a" * 64, "b" * 64, "c" * 64


def hashed(digest: str) -> Callable[[Study, Variant], str]:
    """A way of hashing that once gave `digest` for the kernel."""
    return lambda study, variant: digest if variant == KERNEL else fingerprint(study, variant)


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Four runs: of the code of today, hashed in two old ways and as now, and of other code."""
    ways = (Migration(hashed(OLDEST), "older"), Migration(hashed(OLD), "old"))
    monkeypatch.setattr(migrate, "MIGRATIONS", ways)
    for run in RUNS[:4]:
        found = store(tmp_path, run)

    def old_hashes(document: dict[str, Any]) -> None:
        document["source_sha256"] = OLD
        document["captures"] = {
            "ncu": {"status": "captured", "source_sha256": OLD},
            "timeline": {"status": "captured", "source_sha256": OTHER},
        }
        for entry, digest in zip(document["runs"], (NOW, OTHER, OLDEST), strict=True):
            entry["source_sha256"] = digest

    edit_json(found.with_suffix(".json"), old_hashes)
    return found


def test_runs_of_todays_code_are_carried_over_and_no_others(tmp_path: Path, path: Path) -> None:
    before = path.read_bytes()
    assert load_variant(path).fresh_runs(NOW) == [RUNS[2]]
    assert migrate.migrate(tmp_path, STUDIES) == {"carried over": 2, "stale": 1}
    loaded = load_variant(path)  # and the checksum of its samples is right
    assert path.read_bytes() == before
    assert loaded.fresh_runs(NOW) == [RUNS[3], RUNS[2], RUNS[0]]
    notes = {run: entry.get("migrated") for run, entry in loaded.run_provenance().items()}
    assert notes == {
        RUNS[3]: [{"from": OLD, "to": NOW, "why": "old"}],
        RUNS[2]: None,
        RUNS[1]: None,
        RUNS[0]: [{"from": OLDEST, "to": NOW, "why": "older"}],
    }
    captures = loaded.provenance["captures"]
    assert captures["ncu"]["source_sha256"] == NOW
    assert captures["timeline"]["source_sha256"] == OTHER


def test_it_is_done_once(tmp_path: Path, path: Path) -> None:
    migrate.migrate(tmp_path, STUDIES)
    once = path.with_suffix(".json").read_text()
    assert migrate.migrate(tmp_path, STUDIES) == {"stale": 1}
    assert path.with_suffix(".json").read_text() == once


def test_edited_code_is_not_carried_over(tmp_path: Path, path: Path) -> None:
    edited = replace(CALLS, variants=(replace(KERNEL, flags=("-O1",)),))
    assert migrate.migrate(tmp_path, {"calls": edited})["carried over"] == 0
    assert json.loads(path.with_suffix(".json").read_text())["source_sha256"] == OLD


def test_results_of_variants_that_are_gone_stay_stale(tmp_path: Path, path: Path) -> None:
    assert migrate.migrate(tmp_path, {}) == {"stale": 4}
