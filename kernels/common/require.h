// Checks of the arguments of bindings. A module has one translation unit of bindings, so what is
// here has internal linkage: compilers inline it as if it stood there.
#pragma once

#include <pybind11/pybind11.h>

#include <string>

namespace {

// Raises a ValueError that names the argument, unless `holds`.
void require(bool holds, const std::string& field, const std::string& expected,
             const std::string& got) {
  if (!holds) {
    throw pybind11::value_error(field + ": expected " + expected + ", got " + got);
  }
}

}  // namespace
