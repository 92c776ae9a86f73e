"""Compilers and modules, for tables that a study derives from its code."""

from analysis.toolchain.compile import run
from analysis.toolchain.compilers import find_cxx
from analysis.toolchain.modules import load_module
