"""Compilers, and modules that were built from a variant's source."""

from analysis.toolchain.compile import run
from analysis.toolchain.modules import load_module
