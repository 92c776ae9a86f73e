"""Results on disk: samples, descriptions and captures of every machine, and published figures."""

from typing import Final

METHOD_VERSION = 3
"""Version of the measurement method. Results of another version are stale.

2: an untimed launch comes between device and host times; data read from host memory is in no cache
3: host times are taken in C++ after the same flush as device times; results are run files
"""

MIN_UNWARMED_S: Final = 0.015
"""Duration from which an operation is not warmed up after its check or before its host times. The
first launch after device times is slower by up to 0.15 ms, which is 1 % of this duration."""
