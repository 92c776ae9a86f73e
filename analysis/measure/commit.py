"""The commit that is measured, as far as it can be known."""

from __future__ import annotations

import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from analysis.base.errors import FieldError

COMMIT_VARIABLE: Final = "HOTPATH_COMMIT"
"""Environment variable with the commit of a clean tree that was copied without its .git."""
_NAME: Final = re.compile(r"[A-Za-z0-9._-]{1,64}")
"""The same form as `commit` in a run's description."""


@dataclass(frozen=True)
class Commit:
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
    try:
        head = _git(root, "rev-parse", "HEAD").strip()
        changes = _git(root, "status", "--porcelain", "--", ".", ":!results").strip()
    except OSError as error:
        return Commit(unknown=f"git: {error.strerror}; {COMMIT_VARIABLE} can name it")
    except subprocess.CalledProcessError as error:
        return Commit(unknown=_reason(error.stderr.splitlines(), root))
    return Commit(head, bool(changes))


def _reason(lines: list[str], root: Path) -> str:
    """Why git refuses, and what helps."""
    why = next((line.removeprefix("fatal: ") for line in lines), "it gave no reason")
    is_of_another = "safe.directory" in "".join(lines)
    trust = f"`git config --global --add safe.directory {root}` trusts its owner"
    return f"git: {why}; {trust if is_of_another else f'{COMMIT_VARIABLE} can name it'}"


def _git(root: Path, *arguments: str) -> str:
    """The output of git for `root` itself, not for one around it. A kill leaves no lock."""
    alone = os.environ | {"GIT_CEILING_DIRECTORIES": str(root.resolve().parent)}
    alone["GIT_OPTIONAL_LOCKS"] = "0"
    return subprocess.run(
        ["git", "-C", str(root), *arguments], env=alone, capture_output=True, text=True, check=True
    ).stdout
