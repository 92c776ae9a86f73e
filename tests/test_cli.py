"""What a person sees where a program cannot go on."""

from __future__ import annotations

import errno
import os

import pytest

from analysis.cli import fail_in_one_line
from analysis.errors import HotpathError
from analysis.processes import STARTER


@pytest.fixture(autouse=True)
def without_starter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(STARTER, raising=False)


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (HotpathError("config: wrong"), "error: config: wrong"),
        (
            OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "results/box/machine.json"),
            "error: results/box/machine.json: No space left on device; make room, then run the "
            "same command again",
        ),
        (
            PermissionError(errno.EACCES, os.strerror(errno.EACCES), "build"),
            "error: build: Permission denied; use a copy of your own, or ask its owner",
        ),
        (
            OSError(errno.EROFS, os.strerror(errno.EROFS), "build"),
            "error: build: Read-only file system; use a copy that can be written to",
        ),
    ],
)
def test_what_a_person_can_mend_is_one_line(error: Exception, told: str) -> None:
    def main() -> None:
        raise error

    with pytest.raises(SystemExit, match=f"^{told}$"):
        fail_in_one_line(main)


def test_a_mistake_of_ours_keeps_its_traceback() -> None:
    def main() -> None:
        raise OSError(errno.EBADF, "of ours")

    with pytest.raises(OSError, match="of ours"):
        fail_in_one_line(main)
