"""Shared by all commands of this package: argument types, errors in one line, interrupts."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from analysis.base.errors import HotpathError, os_error_message
from analysis.base.processes import end_with_starter, interrupt_once

INTERRUPTED: Final = 130
"""Exit code of a program that was interrupted, as shells give it."""


def fail_in_one_line(main: Callable[[], None]) -> None:
    """Run `main`; an error a person can mend ends it with that error alone and exit code 1.

    SIGTERM ends it as SIGINT does: after tidying up. So does the end of the workflow it is part of.
    """
    interrupt_once()
    end_with_starter()
    try:
        main()
    except HotpathError as error:
        sys.exit(f"error: {error}")
    except OSError as error:
        if (message := os_error_message(error)) is None:
            raise
        sys.exit(f"error: {message}")
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        sys.exit(INTERRUPTED)


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
    """A whole number of at least `least`."""

    def count(text: str) -> int:
        if not (text.isascii() and text.isdecimal() and int(text) >= least):
            raise ArgumentTypeError(f"expected a whole number of at least {least}, got {text!r}")
        return int(text)

    return count
