"""Samples, provenance, tables, models, and results carried over refactorings."""
