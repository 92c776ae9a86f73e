"""Search for libfabric, and the variants skipped without it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from analysis.base.errors import FieldError, HotpathError
from analysis.measure.places import Place
from analysis.toolchain.libfabric import MISSING, find_libfabric, has_needed_libfabric
from analysis.toolchain.study_settings import bindings_settings
from tests.compiled import toolchain
from tests.repository import STUDIES


def folder_with(path: Path, *names: str) -> Path:
    for name in names:
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).touch()
    return path


def test_libfabric_is_taken_from_a_folder(tmp_path: Path) -> None:
    plain = folder_with(tmp_path / "a", "include/rdma/fabric.h", "lib/libfabric.so")
    found = find_libfabric(str(plain))
    assert found is not None
    assert (found.include, found.library) == (plain / "include", plain / "lib" / "libfabric.so")
    assert f"-idirafter{plain / 'include'}" in found.compile_flags
    library = "usr/lib/x86_64-linux-gnu/libfabric.so.1"
    unpacked = folder_with(tmp_path / "b", "usr/include/rdma/fabric.h", library)
    found = find_libfabric(str(unpacked))
    assert found is not None
    assert (found.include, found.library) == (unpacked / "usr/include", unpacked / library)


def test_folder_without_libfabric_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(FieldError, match="config: libfabric: expected `auto` or a folder with"):
        find_libfabric(str(tmp_path))


def test_without_libfabric_only_its_variants_are_skipped() -> None:
    for study in STUDIES.values():
        for variant in study.variants:
            needs = "libfabric" in variant.needs
            assert has_needed_libfabric(variant.needs, None) is not needs
            if needs:
                assert Place(Path(), "box").unmet(variant) == MISSING
                assert Place(Path(), "box", libfabric=True).unmet(variant) is None
    with pytest.raises(HotpathError, match="libfabric is not installed"):
        without = replace(toolchain(), libfabric=None)
        bindings_settings(STUDIES["rdma_write"]).for_compiler(without)
