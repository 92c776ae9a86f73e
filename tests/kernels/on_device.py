"""Stand-ins for arrays in GPU memory."""

from __future__ import annotations

from typing import Any


class OnDevice:
    """An array that claims to be in GPU memory, at an address that must never be read."""

    def __init__(
        self, shape: tuple[int, ...], typestr: str, strides: Any = None, address: int = 0x10
    ) -> None:
        self.__cuda_array_interface__ = {
            "shape": shape,
            "typestr": typestr,
            "data": (address, False),
            "strides": strides,
            "version": 3,
        }


def multiple_of(alignment: int) -> str:
    """Expectation in the error for an address that is not aligned."""
    return f"an address that is a multiple of {alignment}"
