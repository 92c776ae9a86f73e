"""Damaged results are refused by name, and cost no other machine."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from analysis.store.collect import collect
from analysis.store.results import CorruptResults, load_variant
from analysis.store.samples import MalformedSamples
from tests.store.runs import edit_json, store
from tests.synthetic import CALLS, RUN, STUDIES, write_machine


def damage_samples(path: Path) -> None:
    text = path.read_text()
    path.write_text(text.replace("e-06", "e-07", 1))
    assert path.read_text() != text


DAMAGE: list[tuple[Callable[[Path], object], str]] = [
    (damage_samples, "kernel.csv: checksum differs from the one in kernel.json"),
    (lambda path: path.write_text(path.read_text()[:-1]), "kernel.csv: checksum differs"),
    (lambda path: path.write_text(path.read_text()[:-3]), "kernel.csv: line 5: started_at"),
    (lambda path: path.write_text(""), "kernel.csv: line 1: expected the columns"),
    (lambda path: path.with_suffix(".json").unlink(), "kernel.csv: its provenance kernel.json is"),
    (lambda path: path.with_suffix(".json").write_text("{"), "kernel.json: not a provenance file"),
    (lambda path: path.with_suffix(".json").write_text("[]"), "kernel.json: not a provenance file"),
    (
        lambda path: edit_json(path.with_suffix(".json"), lambda d: d.pop("samples_sha256")),
        "kernel.json: not a provenance file: KeyError('samples_sha256')",
    ),
    (
        lambda path: edit_json(path.with_suffix(".json"), lambda d: d.pop("source_sha256")),
        "kernel.json: not a provenance file: KeyError('source_sha256')",
    ),
    (
        lambda path: edit_json(path.with_suffix(".json"), lambda d: d.update(runs=None)),
        "kernel.json: not a provenance file",
    ),
    (
        lambda path: edit_json(path.with_suffix(".json"), lambda d: d.update(runs=[{}])),
        "kernel.json: not a provenance file: KeyError('run')",
    ),
]


@pytest.mark.parametrize(("damage", "fault"), DAMAGE)
def test_damaged_results_are_refused_by_name(
    tmp_path: Path, damage: Callable[[Path], object], fault: str
) -> None:
    path = store(tmp_path, RUN)
    damage(path)
    with pytest.raises((CorruptResults, MalformedSamples)) as caught:
        load_variant(path)
    assert str(caught.value).startswith(str(path.parent))
    assert fault in str(caught.value)


@pytest.mark.parametrize(("damage", "fault"), DAMAGE)
def test_only_the_machine_with_the_bad_file_is_left_out(
    tmp_path: Path, damage: Callable[[Path], object], fault: str
) -> None:
    for machine in ("a-box", "b-box", "c-box"):
        write_machine(tmp_path, machine, CALLS, rounds=2)
    whole = collect(tmp_path, STUDIES)
    assert whole.refused == {}
    damage_machine = tmp_path / "b-box" / "calls" / "kernel.csv"
    damage(damage_machine)
    found = collect(tmp_path, STUDIES)
    assert list(found.refused) == ["b-box"]
    assert fault.partition(": line")[0] in found.refused["b-box"]
    assert str(tmp_path) not in found.refused["b-box"]
    kept = whole.samples[whole.samples["machine"] != "b-box"]
    assert found.samples.equals(kept)
    assert list(found.machines) == ["a-box", "c-box"]
    assert {machine for machine, *_ in found.provenance} == {"a-box", "c-box"}


def test_a_machine_whose_description_is_garbled_is_left_out(tmp_path: Path) -> None:
    for machine in ("a-box", "b-box"):
        write_machine(tmp_path, machine, CALLS, rounds=2)
    (tmp_path / "a-box" / "machine.json").write_text("{")
    found = collect(tmp_path, STUDIES)
    assert list(found.refused) == ["a-box"]
    assert set(found.samples["machine"]) == {"b-box"}
