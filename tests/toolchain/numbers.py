"""Made-up studies whose modules return a number."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from analysis.study import Study, load_study

# Without pybind11, which takes seconds to compile.
BINDINGS = """\
#include <Python.h>
int number();
static PyObject* call(PyObject*, PyObject*) { return PyLong_FromLong(number()); }
static PyMethodDef methods[] = {{"number", call, METH_NOARGS, ""}, {nullptr, nullptr, 0, nullptr}};
static PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "variant", "", -1, methods, nullptr, nullptr, nullptr, nullptr};
PyMODINIT_FUNC PyInit_variant() {
  PyObject* made = PyModule_Create(&definition);
  PyModule_AddIntConstant(made, "step", STEP);
  return made;
}
"""


def make_study(folder: Path, entries: list[dict[str, Any]], sources: dict[str, str]) -> Study:
    """A study of host code, whose variants return numbers."""
    folder.mkdir(parents=True)
    common = {"role": "step", "title": "A number", "cases": ["once"]}
    description = {
        "title": "Numbers",
        "question": "Which?",
        "budget_s": 1,
        "constants": {"step": 3},
        "metrics": {"host_time": {"unit": "s", "label": "host time"}},
        "cases": {"once": {"n": [0], "payload_bytes": 0}},
        "headline": {"n": 0},
        "variants": [common | entry for entry in entries],
    }
    (folder / "study.yaml").write_text(yaml.safe_dump(description, sort_keys=False))
    (folder / "bindings.cpp").write_text(BINDINGS)
    for name, text in sources.items():
        (folder / name).write_text(text)
    return load_study(folder / "study.yaml")
