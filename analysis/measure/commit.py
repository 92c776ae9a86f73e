"""The commit that is measured, as far as it can be known."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from typing import Final, NamedTuple

from analysis.base.errors import FieldError

COMMIT_VARIABLE: Final = "HOTPATH_COMMIT"
"""Environment variable with the commit of a clean tree that was copied without its .git."""
_NAME: Final = re.compile(r"[A-Za-z0-9._-]{1,64}")
"""The same form as `commit` in a run's description."""


class Commit(NamedTuple):
    """The commit of a tree and whether anything but results differs from it, or why both are not
    known."""

    name: str | None = None
    dirty: bool | None = None
    unknown: str = ""


def commit_of(root: Path) -> Commit:
    """The commit of a tree by git or, for a copied tree, by the environment. FieldError if results
    may not name it."""
    if named := os.environ.get(COMMIT_VARIABLE):
        if not _NAME.fullmatch(named):
            raise FieldError(COMMIT_VARIABLE, "a commit by its hash or a name without /", named)
        return Commit(named, dirty=False)
    # That of `root` itself, not of a repository around it. A kill leaves no lock.
    alone = {"GIT_CEILING_DIRECTORIES": str(root.resolve().parent), "GIT_OPTIONAL_LOCKS": "0"}

    def git(*arguments: str) -> str:
        return subprocess.check_output(
            ["git", *arguments], cwd=root, env=os.environ | alone, stderr=subprocess.PIPE, text=True
        ).strip()

    try:
        head = git("rev-parse", "HEAD")
        return Commit(head, bool(git("status", "--porcelain", "--", ".", ":!results")))
    except OSError as error:
        why = f"git: {error.strerror}"
    except subprocess.CalledProcessError as error:
        line, *_ = error.stderr.splitlines() or ["it gave no reason"]
        why = f"git: {line.removeprefix('fatal: ')}"
        if "safe.directory" in error.stderr:
            command = f"git config --global --add safe.directory {root}"
            return Commit(unknown=f"{why}; `{command}` trusts its owner")
    return Commit(unknown=f"{why}; {COMMIT_VARIABLE} can name it")
