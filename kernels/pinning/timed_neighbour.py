"""A neighbour process that times its calls together with the state of its thread."""

from __future__ import annotations

import os
import signal
from functools import cache
from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_loader
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.util import Finalize
from pathlib import Path
from typing import Any, Final

import numpy as np

from analysis.api.measure import end_with_parent

from .neighbours import ANSWERS_WITHIN_S
from .waits import Calls

NAME: Final = "timed"
"""The module beside `variant` in the file of the variant."""


def timed_module(module: Any) -> Any:
    """The module `timed` in the file of this variant."""
    return _load(str(Path(module.__file__).resolve()))


class TimedNeighbour:
    """A process with a separate CUDA context, made before this process uses CUDA. It repeats
    cudaMalloc and cudaFree."""

    def __init__(self) -> None:
        fork = get_context("fork")
        self._connection, theirs = fork.Pipe()
        self._process = fork.Process(target=_serve, args=(theirs, self._connection), daemon=True)
        self._process.start()
        theirs.close()
        Finalize(None, self.close, exitpriority=0)

    def start(self, module: Any) -> None:
        """Start calls by this built variant. RuntimeError with the error of the process."""
        self._ask(str(Path(module.__file__).resolve()))

    def stop(self) -> Calls:
        """Stop the calls; returns them. RuntimeError with the error of the process."""
        return np.frombuffer(self._ask(None), np.int64).reshape(-1, 4)

    def close(self) -> None:
        """End the process. Idempotent."""
        self._connection.close()
        self._process.join(ANSWERS_WITHIN_S)

    def _ask(self, request: str | None) -> bytes:
        try:
            self._connection.send(request)
            if not self._connection.poll(ANSWERS_WITHIN_S):
                raise RuntimeError(f"neighbour: no answer within {ANSWERS_WITHIN_S:g} s")
            answer: bytes | str = self._connection.recv()
        except (EOFError, OSError) as error:
            raise RuntimeError("neighbour: its process ended without an answer") from error
        if isinstance(answer, str):
            raise RuntimeError(f"neighbour: {answer}")
        return answer


def _serve(connection: Connection, theirs: Connection) -> None:
    """Answer until the connection is closed; an error is answered as text."""
    end_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent gets it, too, and ends this process
    theirs.close()
    neighbour: Any = None
    try:
        while True:
            path = connection.recv()
            answer: bytes | str
            try:
                if path is None:
                    answer, neighbour = neighbour.stop().tobytes(), None
                else:
                    answer, neighbour = b"", _load(path).TimedNeighbour()
            except (ImportError, RuntimeError, ValueError) as error:
                answer = str(error)
            connection.send(answer)
    except EOFError:
        os._exit(0)


@cache
def _load(path: str) -> Any:
    # Classes of modules are kept by name, so each file has its name.
    loader = ExtensionFileLoader(f"{path}.{NAME}", path)
    spec = spec_from_loader(loader.name, loader)
    assert spec is not None, "an .so file has a loader"
    module = module_from_spec(spec)
    loader.exec_module(module)
    return module
