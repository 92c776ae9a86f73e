"""Packages of operators that engines ship: their releases, in the hash and as a reason to skip."""

import hashlib
import io
import json
import runpy
from dataclasses import replace
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest

from analysis import ROOT
from analysis.base.errors import FieldError
from analysis.study import peers, source
from tests.repository import STUDIES


def test_another_release_is_stale_a_missing_one_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    study = STUDIES["h2d_gather"]
    shipped = replace(study.variants[0], packages=("vllm",))
    prints = {source.fingerprint(study, one) for one in (shipped, study.variants[0])}
    for name in ("sglang", "vllm"):
        changed = {**peers.releases(), name: "9.9.9"}
        monkeypatch.setattr(source, "releases", lambda changed=changed: changed)
        assert (source.fingerprint(study, shipped) in prints) is (name == "sglang")
    assert len(prints) == 2
    monkeypatch.setattr(peers, "FOLDER", tmp_path)
    version = peers.releases()["vllm"]
    assert peers.unmet(["vllm"]) == f"vllm {version} is not installed (env/peers)"
    (tmp_path / f"vllm-{version}").mkdir()
    assert peers.unmet(["vllm"]) is None


def test_another_release_can_be_selected(monkeypatch: pytest.MonkeyPatch) -> None:
    releases = peers.releases.__wrapped__  # without the cache
    monkeypatch.setenv(peers.SELECTED, "vllm==9.9.9")
    assert releases() == {**peers.releases(), "vllm": "9.9.9"}
    for text in ("torch==2", "vllm"):
        monkeypatch.setenv(peers.SELECTED, text)
        with pytest.raises(FieldError, match=f"{peers.SELECTED}.*{text[:4]}"):
            releases()


@pytest.mark.parametrize(
    ("files", "digest", "message"),
    [
        (["kept/a", "other"], "", ""),
        (["kept/a"], "0" * 64, "expected sha256"),
        (["other"], "", "expected files like"),
        (["kept/../../../a"], "", "a path outside of the package"),
    ],
)
def test_only_the_wanted_files_of_the_right_archive_are_installed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, files: list[str], digest: str, message: str
) -> None:
    packed = io.BytesIO()
    with ZipFile(packed, "w") as archive:
        for name in files:
            archive.writestr(name, "text")
    program, content = runpy.run_path(str(ROOT / "env" / "peers")), packed.getvalue()
    right = hashlib.sha256(content).hexdigest()
    listed = {"filename": "p-1.whl", "url": "file", "hashes": {"sha256": right}}
    index = json.dumps({"files": [listed]}).encode()

    def answer(request: Any, timeout: float) -> io.BytesIO:
        return io.BytesIO(content if request == "file" else index)

    monkeypatch.setattr("urllib.request.urlopen", answer)
    entry = {"version": "1", "file": "p-*.whl", "sha256": digest or right, "keep": ["kept/*"]}
    if message:
        with pytest.raises(SystemExit, match=message):
            program["install"]("p", "1", entry, tmp_path / "p-1")
        assert not (tmp_path / "p-1").exists() and not (tmp_path.parent / "a").exists()
    else:
        program["install"]("p", "1", entry, tmp_path / "p-1")
        names = {path.name for path in (tmp_path / "p-1").rglob("*")}
        assert names == {"kept", "a", program["KEPT"]}
        assert program["is_complete"](tmp_path / "p-1", entry)
        assert not program["is_complete"](tmp_path / "p-1", {**entry, "keep": ["other"]})
