"""One measurement at a time on a machine, whoever starts it and from whichever checkout."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import psutil

from analysis import ROOT
from analysis.base.errors import HotpathError
from analysis.base.locks import take
from analysis.measure.machine import utc_now

FOLDERS: Final = ("/run/lock", "/tmp")
"""Folders in which every user may create a file; the first writable one is used."""
FOLDER_VARIABLE: Final = "HOTPATH_LOCK"
"""Environment variable with another folder, as one that the containers of a machine share."""


@contextmanager
def whole_machine(busy: str, what: str) -> Iterator[None]:
    """Hold this machine's lock; `what` describes the work to other processes. If another one holds
    it, `busy` decides: `wait` names the holder and waits, `refuse` raises HotpathError."""

    def held(holder: str) -> None:
        in_use = f"this machine is in use by {holder}"
        if busy == "refuse":
            raise HotpathError(f"config: busy: {in_use}; with busy=wait, this run waits")
        print(f"waiting: {in_use}", flush=True)

    writable = (folder for folder in FOLDERS if os.access(folder, os.W_OK))
    folder = os.environ.get(FOLDER_VARIABLE) or next(writable, FOLDERS[-1])
    me = f"process {os.getpid()} of {psutil.Process().username()} in {ROOT}: {what}"
    lock = take(Path(folder, "hotpath.lock"), f"{me}, since {utc_now('seconds')}", held)
    try:
        yield
    finally:
        lock.release()
