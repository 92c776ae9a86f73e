"""Children of a process end with it or its interruption, and leave nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from concurrent.futures.process import BrokenProcessPool

import psutil
import pytest

from analysis import ROOT
from analysis.base import forked
from analysis.base.cli import INTERRUPTED
from analysis.base.errors import FieldError
from analysis.base.forked import forked_map
from analysis.base.processes import STARTER
from tests.waiting import wait_for

SLEEP = "import time; time.sleep(600)"
PARENT = f"""
import multiprocessing
from analysis.base.processes import end_with_parent

def work():
    end_with_parent()
    print(multiprocessing.current_process().pid, flush=True)
    {SLEEP}

multiprocessing.get_context("fork").Process(target=work).start()
{SLEEP}
"""
PROGRAM = f"""
from analysis.base.cli import fail_in_one_line
def work():
    print("ready", flush=True)
    {SLEEP}
fail_in_one_line(work)
"""
TIDIES = """
import os, signal
from analysis.base.cli import fail_in_one_line
signal.signal(signal.SIGINT, signal.default_int_handler)  # the caller of the tests may ignore it
def work():
    try:
        os.kill(os.getpid(), signal.SIGINT)
    finally:
        os.kill(os.getpid(), signal.SIGTERM)
        print("tidy", flush=True)
fail_in_one_line(work)
"""


def start(code: str, **environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | environment,
    )


def first_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def test_child_ends_when_its_parent_is_killed() -> None:
    parent = start(PARENT)
    child = int(first_line(parent))
    parent.kill()
    parent.wait()
    wait_for(lambda: not psutil.pid_exists(child) or psutil.Process(child).status() == "zombie")


def test_program_cleans_up_and_ends_with_its_parent() -> None:
    starter = start(SLEEP)
    program = start(PROGRAM, **{STARTER: str(starter.pid)})
    assert first_line(program) == "ready"
    starter.kill()
    starter.wait()
    assert program.communicate()[1] == "interrupted\n"
    assert program.returncode == INTERRUPTED
    late = start(PROGRAM, **{STARTER: str(starter.pid)})
    assert "has ended" in late.communicate()[1]


def test_second_interrupt_does_not_stop_the_cleanup() -> None:
    program = start(TIDIES)
    assert program.communicate() == ("tidy\n", "interrupted\n")
    assert program.returncode == INTERRUPTED


def test_an_interrupt_while_modules_are_imported_is_one_line() -> None:
    program = start("import analysis; raise KeyboardInterrupt")
    assert program.communicate() == ("", "interrupted\n")
    fault = start("import analysis; raise ValueError('of ours')")
    assert "Traceback" in fault.communicate()[1]


def test_results_and_errors_of_other_processes_reach_the_caller(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(forked, "allowed_cores", lambda: 2)
    results = forked_map(lambda item: (item, os.getpid()), range(5))
    assert [item for item, _ in results] == [0, 1, 2, 3, 4]
    assert os.getpid() not in {process for _, process in results}

    def fail(item: int) -> None:
        raise FieldError(f"field {item}", "none", item)

    with pytest.raises(FieldError, match="field 1: expected none, got 1") as raised:
        forked_map(fail, [1, 2])
    assert raised.value.field == "field 1"
    with pytest.raises(BrokenProcessPool):
        forked_map(lambda _: os.kill(os.getpid(), signal.SIGKILL), range(2))


def test_numerical_libraries_start_no_threads() -> None:
    code = "import os, analysis, numpy, scipy.special; print(len(os.listdir('/proc/self/task')))"
    others = {name: value for name, value in os.environ.items() if "NUM_THREADS" not in name}
    printed = subprocess.check_output([sys.executable, "-c", code], cwd=ROOT, env=others)
    assert int(printed) == 1
