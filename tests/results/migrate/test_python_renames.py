"""Renamed classes, functions and attributes leave Python code the same; other changes do not."""

from __future__ import annotations

from pathlib import Path

import pytest

from analysis.results.migrate.host_code import Different
from analysis.results.migrate.python_code import compare_python

FILES = {
    "workload.py": """
from .child import Child, Reply, nth


class Workload:
    def prepare(self, case):
        reply = Child(case["n"]).enquire(most=3)
        self._told = nth(reply.responses, step=len(reply.responses))
        return self._told

    def bind(self, variant, module):
        import torch

        return torch.empty(int(getattr(module, "device")))
""",
    "child.py": """
class Reply:
    def __init__(self, answers):
        self.responses = answers


class Child:
    def __init__(self, capacity):
        self.capacity = capacity

    def enquire(self, most):
        return Reply([self.capacity] * most)


def nth(answers, step):
    return answers[::step]
""",
}
RENAMED = [
    *[("_told", "_stored"), ("responses", "replied"), ("enquire", "inquire")],
    *[("Reply", "Answer"), ("nth", "spaced_out")],
]
"""Attributes, a method, and a class and a function of two files."""
CHANGED = {
    "two names become one": ("capacity", "answers"),
    "a name that a string has": ("_told", "device"),
    "another imported module": ("torch", "jax"),
    "a function of another module": ("torch.empty", "torch.zeros"),
    "a method that the engine calls": ("def prepare", "def arrange"),
    "a class that the engine imports": ("Workload", "Work"),
    "a keyword alone": ("most=3", "limit=3"),
    "one place of two": ("nth(reply.responses", "nth(reply.replied"),
    "a parameter and its keyword": ("step", "stride"),
    "a special method": ("__init__", "__call__"),
    "a constant": ("most=3", "most=4"),
}


def compared(folder: Path, before: str = "", after: str = "") -> bytes:
    """Result of comparing the files with a copy in which a text is replaced."""
    paths = []
    for name, change in (("old", ("", "")), ("new", (before, after))):
        (folder / name).mkdir(parents=True)
        for file, text in FILES.items():
            (folder / name / file).write_text(text.replace(*change) if change[0] else text)
        paths.append({file: folder / name / file for file in FILES})
    return compare_python(paths[0], paths[1])


@pytest.mark.parametrize(("before", "after"), RENAMED)
def test_a_rename_is_the_same(before: str, after: str, tmp_path: Path) -> None:
    assert compared(tmp_path / "renamed", before, after) == compared(tmp_path / "same")


@pytest.mark.parametrize("what", CHANGED)
def test_another_change_differs(what: str, tmp_path: Path) -> None:
    assert CHANGED[what][0] in "".join(FILES.values())
    with pytest.raises(Different):
        compared(tmp_path, *CHANGED[what])
