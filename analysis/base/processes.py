"""Processes: ends them with the one that started them, and maps a function over forked ones."""

import ctypes
import multiprocessing
import os
import select
import shutil
import signal
import tempfile
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from multiprocessing import process as multiprocessing_process
from multiprocessing import util
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, Final, NoReturn, TypeVar

import psutil

from analysis.base.limits import allowed_cores

Item = TypeVar("Item")
Result = TypeVar("Result")

STARTER: Final = "HOTPATH_STARTER"
"""Environment variable with the id of the process that a program works for, as the workflow's."""
GRACE_S: Final = 1.0
"""Time for a program to tidy up once its starter has ended."""
KILLED_S: Final = 20.0
"""Time that a killed process has to end. The driver unmaps tens of GiB of pinned memory."""
_PR_SET_PDEATHSIG: Final = 1


def end_with_parent() -> None:
    """Have the kernel end this process, which multiprocessing has made, when its parent ends."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    parent = multiprocessing.parent_process()
    if parent is not None and not parent.is_alive():
        os.kill(os.getpid(), signal.SIGKILL)


def killed(process: BaseProcess) -> bool:
    """Kill a process that multiprocessing has made, and wait KILLED_S. False if it still runs, as
    one that waits for a GPU in the kernel does; this program then ends without it."""
    process.kill()
    process.join(KILLED_S)
    if process.is_alive():
        # At the exit of this program, multiprocessing would wait for it for ever.
        vars(multiprocessing_process)["_children"].discard(process)
    return not process.is_alive()


def interrupt_once() -> None:
    """Have SIGTERM interrupt this program as SIGINT does, and only the first of them.

    Both a terminal and a starter that passes signals on may send one: tidying up then goes on.
    """

    def interrupt(number: int, frame: object) -> NoReturn:
        for later in _handled():
            signal.signal(later, signal.SIG_IGN)
        raise KeyboardInterrupt

    for number in _handled():
        signal.signal(number, interrupt)


def pass_interrupts_on() -> None:
    """Pass SIGINT and SIGTERM on to all child processes. asyncio's handlers stay in place: they end
    all tasks before they interrupt."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer)

    def pass_on() -> None:
        while number := os.read(reader, 1)[0]:
            for started in psutil.Process().children(recursive=True) * (number in _handled()):
                with suppress(psutil.NoSuchProcess):
                    started.send_signal(number)

    threading.Thread(target=pass_on, daemon=True).start()


def _handled() -> list[signal.Signals]:
    """SIGINT and SIGTERM, without those that the starter has set to be ignored."""
    return [n for n in (signal.SIGINT, signal.SIGTERM) if signal.getsignal(n) != signal.SIG_IGN]


def end_with_starter() -> None:
    """End this program and its child processes when its starter, if it has one, ends or is killed.

    A shell may run between the two, so PR_SET_PDEATHSIG does not help.
    """
    starter, os.environ[STARTER] = os.environ.get(STARTER), str(os.getpid())
    if starter is None:
        return
    try:
        watched = os.pidfd_open(int(starter))
    except ProcessLookupError:
        raise SystemExit("the starter of this program has ended") from None
    main = threading.main_thread()

    def follow() -> None:
        select.select([watched], [], [])
        signal.pthread_kill(main.ident or 0, signal.SIGTERM)
        main.join(GRACE_S)
        os.kill(os.getpid(), signal.SIGKILL)

    threading.Thread(target=follow, daemon=True).start()


def keep_sockets_in(folder: Path) -> None:
    """Have multiprocessing keep the sockets of this program in `folder`, which is emptied: in the
    temporary directory they would stay if the program is killed."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    former = tempfile.tempdir
    # The path of a socket must be short; through /proc it is.
    tempfile.tempdir = f"/proc/{os.getpid()}/fd/{os.open(folder, os.O_RDONLY)}"
    util.get_temp_dir()  # chosen once for the program
    tempfile.tempdir = former


_work: tuple[Callable[[Any], Any], list[Any]]
"""The function and the items, in a forked process."""


def forked_map(
    function: Callable[[Item], Result], items: Iterable[Item], max_processes: int | None = None
) -> list[Result]:
    """Apply `function` to each item in forked processes, and return the results in the order of the
    items. Uses at most one process for each allowed core, and at most `max_processes`.

    Only results are pickled, so `function` may be a lambda that refers to large tables. Processes
    take the items one after the other, so put the slowest first. Raises the first error.
    """
    items = list(items)
    workers = min(len(items), allowed_cores(), max_processes or len(items))
    if workers < 2:
        return list(map(function, items))
    context = multiprocessing.get_context("fork")
    with ProcessPoolExecutor(workers, context, _begin, (function, items)) as pool:
        return list(pool.map(_run, range(len(items))))


def _begin(*work: Any) -> None:
    global _work
    end_with_parent()
    _work = work


def _run(index: int) -> Any:
    function, items = _work
    return function(items[index])
