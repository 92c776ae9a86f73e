"""Runs Snakemake in a fork for each line of its input, having imported it only once.

A line is JSON: the folder to run in, the arguments, and the file for what is printed. The answer
is a line with the exit status. None of our own code is imported before the fork: a copy of the
repository has its own.
"""

from __future__ import annotations

import json
import os
import sys
from typing import NoReturn

import jsonschema  # noqa: F401  (as our code does)
import numpy  # noqa: F401
from snakemake import cli


def run(folder: str, arguments: list[str], printed: str) -> NoReturn:
    """As `python -m snakemake` does in a process of its own."""
    os.chdir(folder)
    file = os.open(printed, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for here, to in ((nothing, 0), (file, 1), (file, 2)):
        os.dup2(here, to)
    sys.argv = ["snakemake", *arguments]
    sys.exit(cli.main())


for line in sys.stdin:
    child = os.fork()
    if child == 0:
        run(*json.loads(line))
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
