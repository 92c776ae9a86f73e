"""The layout of pieces on both sides, and the check of the bytes that arrived."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from analysis.api.memory import first_difference, same_bytes
from analysis.api.study import Case, FieldError

POISON = 0xA5
UNASKED = 0x5A
"""Fills the space around and between the pieces of a source. A target with such bytes received too
many."""
GUARD = 4096
"""Bytes before and after all pieces that must not change; also the largest gap."""

Bytes = np.ndarray


@dataclass(frozen=True)
class Layout:
    """The layout of `count` pieces of `size` bytes: packed on the device, `pitch` apart on the
    host."""

    size: int
    count: int

    @property
    def pitch(self) -> int:
        return self.size + min(self.size, GUARD)

    @property
    def packed_bytes(self) -> int:
        return self.size * self.count

    @property
    def host_bytes(self) -> int:
        return GUARD + self.pitch * self.count + GUARD

    @property
    def device_bytes(self) -> int:
        return GUARD + self.packed_bytes + GUARD

    def pieces(self, host: Bytes) -> Bytes:
        """The pieces [count, size] in `host`, uint8 of at least host_bytes; a view."""
        return self._rows(host)[:, : self.size]

    def put(self, host: Bytes, payload: Bytes) -> None:
        """Make `host` a source: the packed `payload` in its pieces, UNASKED everywhere else."""
        host[:GUARD] = host[self.host_bytes - GUARD : self.host_bytes] = UNASKED
        rows = self._rows(host)
        rows[:, self.size :] = UNASKED
        rows[:, : self.size] = payload.reshape(self.count, self.size)

    def image(self, payload: Bytes, around: int, out: Bytes) -> Bytes:
        """Make `out` an image of device memory: the packed `payload`, the byte `around`
        elsewhere."""
        image = out[: self.device_bytes]
        image[:GUARD] = image[-GUARD:] = around
        image[GUARD:-GUARD] = payload
        return image

    def wrong_on_device(self, image: Bytes, payload: Bytes) -> str | None:
        """The first difference between an image of device memory and `payload`, or None."""
        if wrong := wrong_bytes(image[GUARD:][: payload.nbytes], payload):
            return wrong
        guards = np.concatenate([image[:GUARD], image[GUARD + payload.nbytes :]])
        return _changed(guards, "around the pieces on the device")

    def wrong_on_host(self, image: Bytes, payload: Bytes) -> str | None:
        """The first difference between an image of host memory and its pieces, or None."""
        landed = np.ascontiguousarray(self.pieces(image)).reshape(-1)
        if wrong := wrong_bytes(landed, payload):
            return wrong
        if wrong := _changed(self._rows(image)[:, self.size :], "between the pieces"):
            return wrong
        end = self.host_bytes
        guards = np.concatenate([image[:GUARD], image[end - GUARD : end]])
        return _changed(guards, "around the pieces on the host")

    def _rows(self, host: Bytes) -> Bytes:
        return host[GUARD:][: self.pitch * self.count].reshape(self.count, self.pitch)


def wrong_bytes(landed: Bytes, payload: Bytes) -> str | None:
    if same_bytes(landed, payload):
        return None
    byte = first_difference(landed, payload)
    return f"byte {byte}: expected {payload[byte]}, got {landed[byte]}"


def _changed(guard: Bytes, where: str) -> str | None:
    changed = int(np.count_nonzero(guard != POISON))
    return f"{changed} bytes {where} changed" if changed else None


def layout_of(case: Case) -> Layout:
    """The layout of a case. FieldError if it has no pieces."""
    size, count = case.number("size"), case.number("count")
    for key, number in (("size", size), ("count", count)):
        if number < 1:
            raise FieldError(f"case {case.id}: {key}", "at least 1", number)
    return Layout(size, count)
