"""Name of a machine's results."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.measure import machine
from analysis.measure.machine import describe, slug

FOLDERS = {
    "NVIDIA H200": "nvidia-h200",
    "NVIDIA H100 80GB HBM3": "nvidia-h100-80gb-hbm3",
    "GeForce RTX(TM) 4090 / D ": "geforce-rtx-tm-4090-d",
}


def test_a_machines_folder_is_named_after_its_gpu() -> None:
    assert {name: slug(name) for name in FOLDERS} == FOLDERS


@given(st.text())
def test_a_slug_is_lower_case_letters_digits_and_single_hyphens(name: str) -> None:
    assert re.fullmatch(r"([a-z0-9]+(-[a-z0-9]+)*)?", slug(name))


def test_the_processor_is_identified_where_its_name_is_hidden(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fields = {"vendor_id": "GenuineIntel", "cpu family": "6", "model": "143", "stepping": "8"}
    monkeypatch.setattr(machine, "_cpu_field", lambda name: fields.get(name, ""))
    assert describe([]).cpu_id == "GenuineIntel 6-143-8"
    for name, text in {"level": "2", "type": "Unified", "size": "2048K"}.items():
        (tmp_path / "index0").mkdir(exist_ok=True)
        (tmp_path / "index0" / name).write_text(text)
    assert machine._cpu_caches(tmp_path) == {"L2_unified_bytes": 2 * 2**20}
    monkeypatch.setattr(machine, "IOMMUS", (tmp_path / "none", tmp_path))
    assert describe([]).iommu
    fields.clear()
    assert describe([]).cpu_id is None
    assert "cpu_id" in describe([]).unsupported


def test_versions_of_linked_packages_are_recorded(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "librmm_cu13-26.10.0.dist-info").mkdir()
    metadata = tmp_path / "librmm_cu13-26.10.0.dist-info" / "METADATA"
    metadata.write_text("Name: librmm-cu13\nVersion: 26.10.0\n")
    monkeypatch.syspath_prepend(tmp_path)
    libraries = describe([]).libraries
    assert libraries["librmm-cu13"] == "26.10.0"
