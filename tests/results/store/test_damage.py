"""Damaged results are rejected by name, without an effect on other machines."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from analysis.base.errors import HotpathError
from analysis.results.store import collect as collecting
from analysis.results.store.collect import collect
from analysis.results.store.results import VariantResults, load_variant, set_capture
from tests.editing import edit_json
from tests.results.store.runs import store
from tests.synthetic import CALLS, COPY, RUN, STUDIES, write_machine


def damage_samples(path: Path) -> None:
    text = path.read_text()
    path.write_text(text.replace("e-06", "e-07", 1))
    assert path.read_text() != text


DAMAGE: list[tuple[Callable[[Path], object], str]] = [
    (damage_samples, "kernel.csv: checksum differs from the one in kernel.json"),
    (lambda path: path.write_text(path.read_text()[:-1]), "kernel.csv: checksum differs"),
    (lambda path: path.write_text(""), "kernel.csv: checksum differs"),
    (lambda path: path.with_suffix(".json").unlink(), "kernel.json: the provenance of kernel.csv"),
    (lambda path: path.with_suffix(".json").write_text("{"), "kernel.json: not valid JSON: "),
    (lambda path: path.with_suffix(".json").write_text("[]"), "kernel.json: expected type object"),
    (
        lambda path: edit_json(path.with_suffix(".json"), lambda d: d.pop("samples_sha256")),
        "kernel.json: samples_sha256: expected a value, got None",
    ),
    (
        lambda path: edit_json(path.with_suffix(".json"), lambda d: d.pop("source_sha256")),
        "kernel.json: source_sha256: expected a value",
    ),
    (
        lambda path: edit_json(path.with_suffix(".json"), lambda d: d.update(runs=None)),
        "kernel.json: runs: expected type array",
    ),
    (
        lambda path: edit_json(path.with_suffix(".json"), lambda d: d.update(runs=[{}])),
        "kernel.json: runs.0.run: expected a value",
    ),
]


@pytest.mark.parametrize(("damage", "fault"), DAMAGE)
def test_damaged_results_are_rejected_by_name(
    tmp_path: Path, damage: Callable[[Path], object], fault: str
) -> None:
    path = store(tmp_path, RUN)
    damage(path)
    with pytest.raises(HotpathError) as caught:
        load_variant(path)
    assert str(caught.value).startswith(str(path.parent))
    assert fault in str(caught.value)


# The mutations of test_hostile.py are left out alone, too.
@pytest.mark.parametrize(
    ("damage", "fault"),
    [DAMAGE[0], *(pytest.param(*one, marks=pytest.mark.long) for one in DAMAGE[1:])],
)
def test_only_the_study_with_the_bad_file_is_left_out_on_its_machine(
    tmp_path: Path, damage: Callable[[Path], object], fault: str
) -> None:
    for machine in ("a-box", "b-box", "c-box"):
        for study in (CALLS, COPY):
            write_machine(tmp_path, machine, study, rounds=2)
    whole = collect(tmp_path, STUDIES)
    assert whole.refused == {}
    damage(tmp_path / "b-box" / "calls" / "kernel.csv")
    found = collect(tmp_path, STUDIES)
    assert list(found.refused) == ["b-box/calls"]
    assert fault in found.refused["b-box/calls"]
    assert str(tmp_path) not in found.refused["b-box/calls"]
    is_bad = (whole.samples["machine"] == "b-box") & (whole.samples["study"] == "calls")
    assert found.samples.equals(whole.samples[~is_bad])
    assert list(found.machines) == ["a-box", "b-box", "c-box"]
    assert {key[:2] for key in whole.provenance.keys() - found.provenance.keys()} == {
        ("b-box", "calls")
    }


def test_machine_with_an_invalid_description_is_left_out(tmp_path: Path) -> None:
    for machine in ("a-box", "b-box"):
        write_machine(tmp_path, machine, CALLS, rounds=2)
    (tmp_path / "a-box" / "machine.json").write_text("{")
    found = collect(tmp_path, STUDIES)
    assert list(found.refused) == ["a-box"]
    assert set(found.samples["machine"]) == {"b-box"}


def test_a_fault_that_no_check_foresees_leaves_out_its_study_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def load(path: Path) -> VariantResults:
        if "b-box" in path.parts:
            raise KeyError("surprise")
        return load_variant(path)

    for machine in ("a-box", "b-box"):
        write_machine(tmp_path, machine, CALLS, rounds=2)
    monkeypatch.setattr(collecting, "load_variant", load)
    found = collect(tmp_path, STUDIES)
    assert found.refused == {"b-box/calls": "b-box/calls: KeyError: 'surprise'"}
    assert set(found.samples["machine"]) == {"a-box"}


def test_damage_is_one_error_for_a_capture_too(tmp_path: Path) -> None:
    path = store(tmp_path, RUN)
    path.with_suffix(".json").write_text("{")
    with pytest.raises(HotpathError, match=r"kernel\.json: not valid JSON"):
        set_capture(tmp_path, "box", "calls", "kernel", "ncu", {"status": "captured"})
