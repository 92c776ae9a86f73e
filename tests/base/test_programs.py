"""Programs: messages when they cannot continue, processes that end together, parallel maps."""

import errno
import os
import signal
import subprocess
import sys
from concurrent.futures.process import BrokenProcessPool

import psutil
import pytest

from analysis import ROOT
from analysis.base import cli, processes
from analysis.base.errors import FieldError, HotpathError
from analysis.base.processes import STARTER, forked_map
from tests.waiting import wait_for

FULL = "No space left on device; make room, then run the same command again"
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
PROGRAM = """
import os, signal
from analysis.base.cli import fail_in_one_line
from analysis.base.errors import HotpathError
signal.signal(signal.SIGINT, signal.default_int_handler)  # the caller of the tests may ignore it
def work():
    {}
fail_in_one_line(work)
"""
WAITS = PROGRAM.format(f"print('ready', flush=True); {SLEEP}")
TIDIES = """try:
        os.kill(os.getpid(), signal.SIGINT)
    finally:
        os.kill(os.getpid(), signal.SIGTERM)
        print("tidy", flush=True)"""


def start(code: str, redirection: str = "", **environment: str) -> subprocess.Popen[str]:
    others = {k: v for k, v in os.environ.items() if k not in ("PYTHONUNBUFFERED", STARTER)}
    script = f'"$0" -c "$1" {redirection}; exit ${{PIPESTATUS[0]}}'
    shell = ["bash", "-c", script if redirection else 'exec "$0" -c "$1"', sys.executable, code]
    pipe, environment = subprocess.PIPE, others | environment
    return subprocess.Popen(shell, stdout=pipe, stderr=pipe, text=True, env=environment, cwd=ROOT)


def first_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def test_expected_errors_are_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(STARTER, raising=False)
    for error, message in (
        (HotpathError("config: wrong"), "error: config: wrong"),
        (OSError(errno.ENOSPC, "No space", "a.json"), "error: a.json: No space; make"),
        (OSError(errno.EBADF, "a mistake"), r"\[Errno 9\] a mistake"),
    ):

        def main(error: Exception = error) -> None:
            raise error

        with pytest.raises((SystemExit, OSError), match=f"^{message}"):
            cli.fail_in_one_line(main)


@pytest.mark.parametrize(
    ("work", "redirection", "code", "error"),
    [
        ("while True: print('line')", "| true", cli.READER_GONE, ""),
        ("print('line'); raise HotpathError('wrong')", "| true", 1, "error: wrong\n"),
        ("print('line')", ">&-", 0, ""),
        ("print('line')", ">/dev/full", 1, f"error: {FULL}\n"),
        (TIDIES, "", cli.INTERRUPTED, "interrupted\n"),
    ],
)
def test_output_that_cannot_be_written_and_interrupts_are_no_traceback(
    work: str, redirection: str, code: int, error: str
) -> None:
    ended = start(PROGRAM.format(work), redirection)
    printed, message = ended.communicate()
    assert (ended.returncode, message) == (code, error)
    assert work != TIDIES or printed == "tidy\n", "a second interrupt stops no cleanup"


def test_child_ends_when_its_parent_is_killed() -> None:
    parent = start(PARENT)
    child = int(first_line(parent))
    parent.kill()
    parent.wait()
    wait_for(lambda: not psutil.pid_exists(child) or psutil.Process(child).status() == "zombie")


def test_program_cleans_up_and_ends_with_its_starter() -> None:
    starter = start(SLEEP)
    ending = start(WAITS, **{STARTER: str(starter.pid)})
    assert first_line(ending) == "ready"
    starter.kill()
    starter.wait()
    assert ending.communicate()[1] == "interrupted\n"
    assert ending.returncode == cli.INTERRUPTED
    late = start(WAITS, **{STARTER: str(starter.pid)})
    assert "has ended" in late.communicate()[1]


def test_importing_is_interrupted_in_one_line_and_starts_no_threads() -> None:
    tasks = "import os, analysis, numpy, scipy.special; print(len(os.listdir('/proc/self/task')))"
    assert start(tasks, OPENBLAS_NUM_THREADS="1").communicate() == ("1\n", "")
    interrupted = start("import analysis; raise KeyboardInterrupt")
    assert interrupted.communicate() == ("", "interrupted\n")


def test_results_and_errors_of_processes_reach_the_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "allowed_cores", lambda: 2)
    results = forked_map(lambda item: (item, os.getpid()), range(5))
    assert [item for item, _ in results] == [0, 1, 2, 3, 4]
    assert os.getpid() not in {process for _, process in results}
    nested = forked_map(lambda item: forked_map(lambda n: n + item, range(3)), range(5))
    assert nested == [[item, item + 1, item + 2] for item in range(5)]

    def fail(item: int) -> None:
        raise FieldError(f"field {item}", "none", item)

    with pytest.raises(FieldError, match="field 1: expected none, got 1") as raised:
        forked_map(fail, [1, 2])
    assert raised.value.field == "field 1"
    with pytest.raises(BrokenProcessPool):
        forked_map(lambda _: os.kill(os.getpid(), signal.SIGKILL), range(2))
