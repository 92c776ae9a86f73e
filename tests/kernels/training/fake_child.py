"""Scripted processes in place of those with an allocator each."""

from __future__ import annotations

import os
import signal
import time
from typing import Any

from analysis.toolchain.modules import load_python
from tests.repository import STUDIES

Message = dict[str, Any]


class Fake:
    """Answers with the order that made it; some works end it."""

    def __init__(self, order: Message) -> None:
        if order.get("is_broken"):
            raise RuntimeError("no allocator\nof this kind")
        self._order = order

    def answer(self, request: Message) -> Message:
        match request["work"]:
            case "dies":
                os.kill(os.getpid(), signal.SIGKILL)
            case "hangs":
                time.sleep(60)
            case "fails":
                raise ValueError("first line\n  second line")
        return {"order": self._order, "by": os.getpid()}


def fakes() -> Any:
    """Children that are fakes."""
    return load_python(STUDIES["training"], "children").Children(Fake)


def pids_of(children: Any, *names: str) -> list[int]:
    """Processes of these names, and that of their server."""
    return [children.get(name).ask(work="")["by"] for name in names] + [children._server.pid]
