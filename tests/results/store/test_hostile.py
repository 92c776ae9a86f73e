"""Invalid results, by mistake or intent: they alone are left out, by name."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from analysis.results.store.collect import KEY, Collected, collect
from analysis.results.store.folders import DESCRIPTION
from tests.results.store.changes import STUDY, VARIANT, write_whole_machine
from tests.results.store.edits import EDITS, Edit, apply
from tests.results.store.mutations import MUTATIONS, Mutation
from tests.roots import write_tables
from tests.synthetic import CALLS, MAX_ROUNDS, STUDIES

WHOLE = "whole-box"
HOSTILE = "hostile-box"


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("whole")
    for machine in (WHOLE, HOSTILE):
        write_whole_machine(root, machine, CALLS)
    return root


@pytest.fixture(scope="module")
def expected(whole: Path) -> Collected:
    """Files before any change."""
    found = collect(whole, STUDIES)
    assert found.refused == {}
    return found


@pytest.fixture
def root(whole: Path, tmp_path: Path) -> Path:
    """Two machines with one study."""
    return shutil.copytree(whole, tmp_path / "results")


def assert_whole(found: Collected, expected: Collected, machine: str) -> None:
    of_machine = expected.samples[expected.samples["machine"] == machine]
    kept = found.samples[found.samples["machine"] == machine]
    assert kept.reset_index(drop=True).equals(of_machine.reset_index(drop=True))


def test_there_are_120_mutations() -> None:
    assert len(MUTATIONS) >= 120


@pytest.mark.parametrize("name", MUTATIONS)
def test_mutation_is_rejected_by_name_or_harmless(
    root: Path, expected: Collected, name: str
) -> None:
    mutation: Mutation = MUTATIONS[name]
    mutation.change(root / HOSTILE)
    found = collect(root, STUDIES)
    assert_whole(found, expected, WHOLE)
    if mutation.refused is None:
        assert found.refused == {}
        return
    folder = f"{HOSTILE}/{mutation.refused}".rstrip("/")
    assert list(found.refused) == [folder]
    reason = found.refused[folder]
    assert mutation.says in reason
    assert reason.isprintable() and len(reason) < 600
    if mutation.refused in (STUDY, ""):
        assert set(found.samples["machine"]) == {WHOLE}
    else:
        assert not set(found.samples["study"]) - {STUDY}


def check_random(whole: Path, tmp: Path, edits: Sequence[Edit]) -> None:
    root = tmp / "results"
    shutil.rmtree(tmp, ignore_errors=True)
    shutil.copytree(whole, root)
    apply(root / HOSTILE, edits)
    found = collect(root, STUDIES)
    if found.refused:
        ((folder, reason),) = found.refused.items()
        file = f"{HOSTILE}/{STUDY}/{VARIANT}." if folder != HOSTILE else f"{HOSTILE}/{DESCRIPTION}"
        assert folder in (HOSTILE, f"{HOSTILE}/{STUDY}")
        assert reason.startswith(file)
        assert set(found.samples["machine"]) == {WHOLE}
        return
    assert_allowed(found)
    write_tables(root, STUDIES, tmp / "tables")


def assert_allowed(found: Collected) -> None:
    """Check every rule for samples on the table."""
    rows = found.samples
    measured = rows[rows["status"] == "ok"]
    assert measured["value"].between(1e-15, 1e18).all()
    assert rows.loc[rows["status"] != "ok", "value"].isna().all()
    assert set(rows["study"]) == {STUDY}
    assert set(rows["variant"]) <= set(CALLS.variant_names)
    fresh = rows[~rows["stale"]]
    cases = {(v.name, case.id) for v in CALLS.variants for case in v.cases}
    assert set(zip(fresh["variant"], fresh["case"], strict=True)) <= cases
    assert set(fresh.loc[fresh["status"] == "ok", "metric"]) <= set(CALLS.metrics)
    assert set(measured["unit"]) == {"s"} or rows["stale"].any()
    assert not rows.duplicated([*KEY[:-1], "run", "round", "sample"]).any()
    assert set(rows["round"]) <= set(range(MAX_ROUNDS))
    assert all(map(str.isprintable, rows["reason"]))


def with_random_edits(examples: int) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Decorator that calls a test with `examples` lists of edits."""
    unheeded = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
    drawn = settings(database=None, max_examples=examples, suppress_health_check=unheeded)
    return lambda test: drawn(given(edits=EDITS)(test))


@with_random_edits(20)
def test_random_change_is_rejected_or_harmless(
    whole: Path, tmp_path: Path, edits: list[Edit]
) -> None:
    check_random(whole, tmp_path / "random", edits)


@pytest.mark.exhaustive
@with_random_edits(2000)
def test_2000_random_changes_are_rejected_or_harmless(
    whole: Path, tmp_path: Path, edits: list[Edit]
) -> None:
    check_random(whole, tmp_path / "random", edits)
