"""Judges comparers of NVBench files: false alarms on identical programs, power on slow-downs."""
