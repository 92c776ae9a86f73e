"""Shared by all commands of this package: argument types, errors in one line, interrupts."""

import json
import os
import re
import sys
from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

from analysis.base.errors import HotpathError, os_error_message, shown
from analysis.base.processes import end_with_starter, interrupt_once

INTERRUPTED: Final = 130
"""Exit code of a program that was interrupted, as shells give it."""
READER_GONE: Final = 141
"""Exit code of a program whose output nobody reads any more, as shells give it for SIGPIPE."""


def fail_in_one_line(main: Callable[[], None]) -> None:
    """Run `main`; an error that a person can mend ends it with one line and exit code 1.

    SIGTERM and the end of the workflow end it as SIGINT does, after tidying up. If the reader of
    its output has gone, as `head` does, it ends in silence.
    """
    interrupt_once()
    end_with_starter()
    try:
        main()
        print(end="", flush=True)
    except HotpathError as error:
        sys.exit(f"error: {error}")
    except BrokenPipeError:
        sys.exit(READER_GONE)
    except OSError as error:
        if (message := os_error_message(error)) is None:
            raise
        sys.exit(f"error: {message}")
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        sys.exit(INTERRUPTED)
    finally:
        # At its end, the interpreter would complain about output that cannot be written.
        for stream in filter(None, (sys.stdout, sys.stderr)):
            try:
                stream.flush()
            except OSError:
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def program(module: str, about: str | None) -> ArgumentParser:
    """The command line of a module, described by the first line of its docstring, `about`."""
    return ArgumentParser(prog=f"python -m {module}", description=(about or "").partition("\n")[0])


def settings(text: str) -> dict[str, Any]:
    """An argument with overrides of config.yaml: a JSON object."""
    with suppress(ValueError, RecursionError):
        if isinstance(data := json.loads(text), dict):
            return data
    raise ArgumentTypeError(f'expected a JSON object like {{"grid": "smoke"}}, got {text!r}')


def at_least(least: int) -> Callable[[str], int]:
    """The type of an argument that is a whole number of at least `least`, in at most 18 digits."""

    def count(text: str) -> int:
        if re.fullmatch("[0-9]{1,18}", text) and int(text) >= least:
            return int(text)
        raise ArgumentTypeError(f"expected a whole number of at least {least}, got {shown(text)}")

    return count
