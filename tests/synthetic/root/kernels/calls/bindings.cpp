// Python's way in; without pybind11, which takes seconds to compile.
#include <Python.h>

#include "operation.h"

static PyObject* from_python(PyObject* /*module*/, PyObject* calls) {
  return PyLong_FromLong(call(int(PyLong_AsLong(calls))));
}

static PyMethodDef methods[] = {{"call", from_python, METH_O, ""}, {nullptr, nullptr, 0, nullptr}};

static PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "variant", "", -1, methods, nullptr, nullptr, nullptr, nullptr};

PyMODINIT_FUNC PyInit_variant() { return PyModule_Create(&definition); }
