"""Modules that were built from a variant's source."""

from analysis.toolchain.modules import load_module
