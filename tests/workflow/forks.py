"""Runs Snakemake in a fork for each line of its input, having imported it only once.

A line is JSON: the folder to run in, the arguments, and the file for the output. The answer is a
line with the exit status. No code of the repository is imported before the fork, because the copy
under test has different code.
"""

import json
import os
import sys

import numpy  # noqa: F401  (the pipeline imports it, too)
import psutil  # noqa: F401
import pydantic.type_adapter  # noqa: F401
import smart_open  # noqa: F401  (as Snakemake does when it opens its first file)
import yaml  # noqa: F401
from snakemake import cli

cli.get_argument_parser()  # imports Snakemake's plugins

for line in sys.stdin:
    child = os.fork()
    if child == 0:
        folder, arguments, output = json.loads(line)
        os.chdir(folder)
        file = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        for source, target in ((os.open(os.devnull, os.O_RDONLY), 0), (file, 1), (file, 2)):
            os.dup2(source, target)
        sys.argv = ["snakemake", *arguments]
        sys.exit(cli.main())
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
