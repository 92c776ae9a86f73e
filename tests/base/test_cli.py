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


@pytest.fixture(autouse=True)
def without_starter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(STARTER, raising=False)


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (HotpathError("config: wrong"), "config: wrong"),
        (
            OSError(errno.ENOSPC, "No space left", "results/box/machine.json"),
            "results/box/machine.json: No space left; make room, then run the same command again",
        ),
        (
            PermissionError(errno.EACCES, "Permission denied", "build"),
            "build: Permission denied; use another copy, or ask its owner",
        ),
    ],
)
def test_expected_errors_are_one_line(error: Exception, message: str) -> None:
    def main() -> None:
        raise error

    with pytest.raises(SystemExit, match=f"^error: {message}$"):
        fail_in_one_line(main)


@pytest.mark.parametrize("error", [OSError(errno.EBADF, "ours"), BrokenPipeError(32, "ours")])
def test_a_mistake_of_ours_keeps_its_traceback(error: OSError) -> None:
    def main() -> None:
        raise error

    with pytest.raises(OSError, match="ours"):
        fail_in_one_line(main)


@pytest.mark.parametrize(
    ("work", "code"),
    [
        ("while True: print('line')", READER_GONE),
        ("while True: print('line', file=sys.stderr)", READER_GONE),
        ("print('line')", READER_GONE),  # its only flush is the last one
        ("print('help'); sys.exit(0)", 0),
        ("print('line'); raise HotpathError('wrong')", 1),
    ],
)
def test_program_ends_silently_when_its_reader_has_gone(work: str, code: int) -> None:
    program = (
        "import sys\nfrom analysis.base.cli import fail_in_one_line\n"
        f"from analysis.base.errors import HotpathError\ndef main():\n    {work}\n"
        "fail_in_one_line(main)"
    )
    reader, writer = os.pipe()
    os.close(reader)
    out, err = (subprocess.PIPE, writer) if "stderr" in work else (writer, subprocess.PIPE)
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    with os.fdopen(writer):
        ended = subprocess.run(
            [sys.executable, "-c", program],
            stdout=out,
            stderr=err,
            env=buffered,
            text=True,
            timeout=60,
            check=False,
        )
    assert (ended.returncode, ended.stdout or "") == (code, "")
    assert (ended.stderr or "") == ("error: wrong\n" if code == 1 else "")


@pytest.mark.parametrize(
    ("redirection", "code", "error"),
    [
        (">&-", 0, ""),
        (">&- 2>&-", 0, ""),
        (
            ">/dev/full",
            1,
            "error: No space left on device; make room, then run the same command again\n",
        ),
    ],
)
def test_output_that_cannot_be_written(redirection: str, code: int, error: str) -> None:
    program = (
        "from analysis.base.cli import fail_in_one_line\nfail_in_one_line(lambda: print('line'))"
    )
    command = f'exec "$0" -c "$1" {redirection}'
    ended = subprocess.run(
        ["bash", "-c", command, sys.executable, program],
        stderr=subprocess.PIPE,
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
    assert re.search(
        f"error: argument --argument: expected {expected}, got", capsys.readouterr().err
    )
