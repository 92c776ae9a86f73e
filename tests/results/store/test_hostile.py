"""Invalid results, by mistake or intent: only their run is left out, by name and in one line."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from analysis.base import keys
from analysis.base.errors import FieldError
from analysis.results.collect import KEY, Collected, collect
from analysis.results.store.keys import (
    CaptureFile,
    GpuKeys,
    HostKeys,
    Keys,
    Limits,
    RunFile,
)
from tests.results.store.hostile import (
    EARLIER,
    EDITS,
    FOLDERS,
    HARMLESS,
    JSON,
    MUTATIONS,
    NAME,
    OF_COUNTERS,
    STUDY,
    Edit,
    apply,
    changed,
    places,
    write_whole_machine,
    wrong,
)
from tests.roots import write_tables
from tests.synthetic import CALLS, STUDIES, name_of

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
    assert len(found.runs) == len(found.captures) == 4
    return found


@pytest.fixture
def root(whole: Path, tmp_path: Path) -> Path:
    """Two machines with one study."""
    return shutil.copytree(whole, tmp_path / "results")


def assert_others_whole(found: Collected, expected: Collected, *, with_earlier: bool) -> None:
    """Check that the other machine, and the other run of the hostile one, are untouched."""
    runs = [(WHOLE, NAME), (WHOLE, name_of(EARLIER))]
    for machine, run in [*runs, *([(HOSTILE, name_of(EARLIER))] if with_earlier else [])]:
        before, now = (
            one.samples[(one.samples["machine"] == machine) & (one.samples["run"] == run)]
            for one in (expected, found)
        )
        assert now.reset_index(drop=True).equals(before.reset_index(drop=True))
        assert len(now)


def assert_one_line_each(found: Collected) -> None:
    for name, reason in found.refused.items():
        assert name.startswith(f"{HOSTILE}/") and reason.startswith(HOSTILE)
        assert reason.isprintable() and len(reason) < 700
        assert "Error: " not in reason


@pytest.mark.parametrize("name", MUTATIONS)
def test_a_fault_is_rejected_alone_or_harmless(root: Path, expected: Collected, name: str) -> None:
    MUTATIONS[name](root / HOSTILE)
    found = collect(root, STUDIES)
    assert_others_whole(found, expected, with_earlier=name not in FOLDERS)
    assert_one_line_each(found)
    assert (found.refused == {}) == (name in HARMLESS)


@pytest.mark.parametrize(("name", "kind"), [(JSON, RunFile), (OF_COUNTERS, CaptureFile)])
def test_a_wrong_value_of_every_key_is_refused_by_name(
    whole: Path, name: str, kind: type[Keys]
) -> None:
    """Also an unknown key in every object, and every key that is missing."""
    data = json.loads((whole / HOSTILE / STUDY / name).read_text())
    data |= {
        "compiler": {"nvcc": "13.0", "cxx": "g++ 13", "arch": "sm_90"},
        "bounds": {"claim": ["0" * 12]},
        "stages_s": dict.fromkeys(("start", "prepare", "check", "timing", "recorded"), 1.0),
        "disturbed": [{"round": 0, "why": ["heat"]}],
        "conditions": [{"spin_s": 0.1, "copy_bytes_per_s": 1e10, "steal_s": 0.0}],
        "telemetry": {"kernel": "captured"},
    }
    text, flags = {"gpu", "arch", "driver", "cuda", "cpu", "cpu_id", "kernel", "python"}, {"ecc"}
    flags |= {"hypervisor", "iommu"}
    gpu, limits, of_host = (
        {key: "x" if key in text else True if key in flags else 1 for key in one.model_fields}
        for one in (GpuKeys, Limits, HostKeys)
    )
    inner_keys = {
        "gpus": [gpu],
        "limits": limits,
        "unsupported": ["iommu"],
        "libraries": {"a": "1"},
    }
    by_name = {"cpu_caches": {"L1": 1}, "peer_access": {"0-1": True}}
    by_name |= {"nvlinks": {"0-1": 1}, "pcie_path": {"0-1": "x"}}
    data["host"] = {**of_host, **inner_keys, **by_name, "id": data["host"]["id"]}
    data = {key: value for key, value in data.items() if key in kind.model_fields}
    keys.read(kind, data, name)
    assert set(data) == set(kind.model_fields)

    def refusal(content: object) -> str:
        with pytest.raises(FieldError) as caught:
            keys.read(kind, content, name)
        return str(caught.value)

    open_keys = {"files", "variants", "bounds", "libraries", "telemetry", *by_name}
    for path in places(data):
        inner = data
        for part in path:
            inner = inner[part]
        for value in wrong(inner):
            assert refusal(changed(data, path, value)).startswith(f"{name}: {path[0]}"), path
        if isinstance(inner, dict) and not open_keys & {str(path[-1])}:
            assert "colour" in refusal(changed(data, (*path, "colour"), "green"))
    for key in data:
        assert key in refusal({one: value for one, value in data.items() if one != key})


@settings(
    database=None,
    max_examples=40,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(edits=EDITS)
def test_a_random_change_is_rejected_or_harmless(
    whole: Path, expected: Collected, tmp_path: Path, edits: list[Edit]
) -> None:
    root = tmp_path / "random" / "results"
    shutil.rmtree(root.parent, ignore_errors=True)
    shutil.copytree(whole, root)
    apply(root / HOSTILE, edits)
    found = collect(root, STUDIES)
    assert_others_whole(found, expected, with_earlier=True)
    assert_one_line_each(found)
    rows = found.samples
    measured = rows[rows["status"] == "ok"]
    assert measured["value"].between(1e-13, 1e15).all()
    assert not rows.duplicated([*KEY[:-1], "run", "round", "sample"]).any()
    if not found.refused:
        write_tables(root, STUDIES, root.parent / "tables")
