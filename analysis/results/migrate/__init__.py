"""Carrying results over a refactoring that leaves alone the code that ran."""
