"""Shared by all commands of this package: argument types, errors in one line, interrupts."""

from __future__ import annotations

import json
import os
import re
import select
import sys
from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from analysis.base.errors import HotpathError, os_error_message, shown
from analysis.base.processes import end_with_starter, interrupt_once

INTERRUPTED: Final = 130
"""Exit code of a program that was interrupted, as shells give it."""
READER_GONE: Final = 141
"""Exit code of a program whose output nobody reads any more, as shells give it for SIGPIPE."""


def fail_in_one_line(main: Callable[[], None]) -> None:
    """Run `main`; an error a person can mend ends it with that error alone and exit code 1.

    SIGTERM ends it as SIGINT does: after tidying up. So does the end of the workflow it is part of.
    If the reader of its output has gone, as `head` does, it ends after tidying up, in silence.
    """
    interrupt_once()
    end_with_starter()
    ignore_missing_tmpdir()
    try:
        main()
        print(end="", flush=True)
    except HotpathError as error:
        sys.exit(f"error: {error}")
    except BrokenPipeError:
        if not _reader_has_gone():
            raise  # the pipe of a child process: a mistake of ours
        sys.exit(READER_GONE)
    except OSError as error:
        if (message := os_error_message(error)) is None:
            raise
        sys.exit(f"error: {message}")
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        sys.exit(INTERRUPTED)
    finally:
        _drop_unwritten_output()


def ignore_missing_tmpdir() -> None:
    """Drop a TMPDIR that does not exist, as most programs do; those of CUDA fail with it."""
    if not Path(os.environ.get("TMPDIR", "/")).is_dir():
        del os.environ["TMPDIR"]


def _reader_has_gone() -> bool:
    """Whether standard output or standard error is a pipe without a reader."""
    streams = select.poll()
    for number in (1, 2):
        streams.register(number, 0)
    return any(event & select.POLLERR for _, event in streams.poll(0))


def _drop_unwritten_output() -> None:
    """Discard output that cannot be written: at its end, the interpreter would complain again."""
    for stream in filter(None, (sys.stdout, sys.stderr)):  # None: closed by the caller, as by >&-
        try:
            stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def program(module: str, about: str | None) -> ArgumentParser:
    """The command line of a module, described by the first line of its docstring, `about`."""
    return ArgumentParser(prog=f"python -m {module}", description=(about or "").partition("\n")[0])


# Types of arguments. argparse prints their errors with the name of the argument.


def settings(text: str) -> dict[str, Any]:
    """Overrides of config.yaml: a JSON object."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise ArgumentTypeError(f'expected a JSON object like {{"grid": "smoke"}}, got {text!r}')
    return found


def existing_folder(text: str) -> Path:
    """An existing folder."""
    if not Path(text).is_dir():
        raise ArgumentTypeError(f"expected an existing folder, got {text!r}")
    return Path(text)


def existing_file(text: str) -> Path:
    """An existing file."""
    if not Path(text).is_file():
        raise ArgumentTypeError(f"expected an existing file, got {text!r}")
    return Path(text)


def at_least(least: int) -> Callable[[str], int]:
    """A whole number of at least `least`, in at most 18 digits."""

    def count(text: str) -> int:
        if not (re.fullmatch("[0-9]{1,18}", text) and int(text) >= least):
            raise ArgumentTypeError(
                f"expected a whole number of at least {least}, got {shown(text)}"
            )
        return int(text)

    return count
