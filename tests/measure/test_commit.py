"""The commit of a result, or the reason for its absence."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from analysis.base.errors import FieldError
from analysis.measure.commit import COMMIT_VARIABLE, Commit, commit_of


@pytest.fixture(autouse=True)
def unnamed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Only the tree determines the commit."""
    for name in (COMMIT_VARIABLE, "GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "none"))


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A checkout with one commit."""
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "code").write_text("1")
    author = ("-c", "user.name=me", "-c", "user.email=me@here")
    for command in (["init", "-q"], ["add", "code"], [*author, "commit", "-q", "-m", "One"]):
        subprocess.run(["git", "-C", str(tree), *command], check=True)
    return tree


def test_a_checkout_has_a_commit_that_only_changed_code_makes_dirty(tree: Path) -> None:
    (tree / "results").mkdir()
    (tree / "results" / "box").write_text("")
    found = commit_of(tree)
    assert found == Commit(found.name, dirty=False)
    assert found.name and len(found.name) == 40
    (tree / "code").write_text("2")
    assert commit_of(tree) == Commit(found.name, dirty=True)


def test_a_kill_leaves_no_lock_as_the_index_stays_as_it_is(tree: Path) -> None:
    index = (tree / ".git" / "index").read_bytes()
    os.utime(tree / "code", (1, 1))
    assert commit_of(tree).dirty is False
    assert (tree / ".git" / "index").read_bytes() == index


def test_a_copy_is_of_the_commit_that_the_environment_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(COMMIT_VARIABLE, "abc")
    assert commit_of(tmp_path) == Commit("abc", dirty=False)


def test_invalid_name_of_a_result_is_rejected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for named in ("feature/x", "a b", "a" * 65):
        monkeypatch.setenv(COMMIT_VARIABLE, named)
        with pytest.raises(FieldError, match=f"^{COMMIT_VARIABLE}: .* got '{named}'"):
            commit_of(tmp_path)


def test_a_copy_is_not_of_the_repository_that_it_lies_in(tree: Path) -> None:
    (tree / "unpacked").mkdir()
    found = commit_of(tree / "unpacked")
    assert found.name is None
    assert found.unknown.startswith("git: not a git repository")
    assert found.unknown.endswith(f"; {COMMIT_VARIABLE} can name it")


def test_checkout_of_another_user_explains_how_to_trust_it(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    assert commit_of(tree) == Commit(
        unknown=f"git: detected dubious ownership in repository at '{tree}'; "
        f"`git config --global --add safe.directory {tree}` trusts its owner"
    )


def test_missing_git_or_commit_is_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    subprocess.run(["git", "-C", str(tmp_path), "init", "-q"], check=True)
    assert "HEAD" in commit_of(tmp_path).unknown
    monkeypatch.setenv("PATH", str(tmp_path))
    reason = f"git: No such file or directory; {COMMIT_VARIABLE} can name it"
    assert commit_of(tmp_path) == Commit(unknown=reason)
