"""What was measured: samples and provenance on disk, and what is computed from them."""

METHOD_VERSION = 1
"""Raised when the way of measuring changes so that older samples no longer compare."""
