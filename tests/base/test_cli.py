"""Messages of programs that cannot continue."""

from __future__ import annotations

import errno
import os
import re
import subprocess
import sys
from collections.abc import Callable

import pytest

from analysis.base.cli import (
    READER_GONE,
    at_least,
    existing_file,
    existing_folder,
    fail_in_one_line,
    program,
    settings,
)
from analysis.base.errors import HotpathError
from analysis.base.processes import STARTER

FULL = "No space left on device; make room, then run the same command again"


@pytest.fixture(autouse=True)
def without_starter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(STARTER, raising=False)


@pytest.mark.parametrize(
    ("error", "kind", "message"),
    [
        (HotpathError("config: wrong"), SystemExit, "error: config: wrong"),
        (OSError(errno.ENOSPC, "No space", "a.json"), SystemExit, "error: a.json: No space; make"),
        (OSError(errno.EBADF, "a mistake"), OSError, ".*a mistake"),
    ],
)
def test_expected_errors_are_one_line(
    error: Exception, kind: type[BaseException], message: str
) -> None:
    def main() -> None:
        raise error

    with pytest.raises(kind, match=f"^{re.escape(message) if kind is SystemExit else message}"):
        fail_in_one_line(main)


@pytest.mark.parametrize(
    ("work", "redirection", "code", "error"),
    [
        ("while True: print('line')", "| true", READER_GONE, ""),
        ("print('line'); raise HotpathError('wrong')", "| true", 1, "error: wrong\n"),
        ("print('line')", ">&-", 0, ""),
        ("print('line')", ">&- 2>&-", 0, ""),
        ("print('line')", ">/dev/full", 1, f"error: {FULL}\n"),
    ],
)
def test_output_that_cannot_be_written_is_no_traceback(
    work: str, redirection: str, code: int, error: str
) -> None:
    script = (
        "from analysis.base.cli import fail_in_one_line\n"
        f"from analysis.base.errors import HotpathError\ndef main():\n    {work}\n"
        "fail_in_one_line(main)"
    )
    command = f'"$0" -c "$1" {redirection}; exit ${{PIPESTATUS[0]}}'
    ended = subprocess.run(
        ["bash", "-c", command, sys.executable, script],
        stderr=subprocess.PIPE,
        env={name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"},
        text=True,
        timeout=60,
        check=False,
    )
    assert (ended.returncode, ended.stderr) == (code, error)


@pytest.mark.parametrize(
    ("kind", "text", "expected"),
    [
        *((settings, text, "a JSON object like .*") for text in ("{", "1", "null", "[" * 100_000)),
        *((at_least(1), text, "a whole number of at least 1") for text in ("0", "1.5", "9" * 19)),
        *((existing_folder, text, "an existing folder") for text in ("/no", __file__)),
        (existing_file, "/no", "an existing file"),
    ],
)
def test_invalid_argument_is_named(
    kind: Callable[[str], object],
    text: str,
    expected: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    parser = program("analysis.made_up", None)
    parser.add_argument("--argument", type=kind)
    with pytest.raises(SystemExit):
        parser.parse_args(["--argument", text])
    assert re.search(f"argument --argument: expected {expected}, got", capsys.readouterr().err)
