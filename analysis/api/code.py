"""Compilers, and modules that were built from a variant's source."""

from analysis.toolchain.modules import compile_bindings, compile_module, load_module
