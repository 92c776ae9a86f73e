"""Names of machines on pages and charts: the number and the model of their GPUs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

_PLAIN: Final = re.compile(r"[A-Za-z0-9]+(?:[ -][A-Za-z0-9]+)*")
"""Text that needs no escaping in any output format."""


def machine_names(machines: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """Short names such as `H100` or `2 × H200`, by folder; `machines` are descriptions by folder.

    A name is the shortest one that no other machine could have. Without one, because no GPU or the
    same GPU as elsewhere is named, it is the name of the folder.
    """
    possible = {machine: _names(described) for machine, described in machines.items()}
    counts = Counter(name for machine, names in possible.items() for name in {machine, *names})
    return {
        machine: next((name for name in names if counts[name] == 1), machine)
        for machine, names in possible.items()
    }


def _names(described: Mapping[str, Any]) -> list[str]:
    """Possible names of a machine, shortest first: its GPU without the vendor, up to the first
    word with a digit or to a later one. `NVIDIA H100 80GB HBM3` is an `H100`, an `H100 80GB` or an
    `H100 80GB HBM3`."""
    gpu, gpus = described.get("gpu"), described.get("gpus")
    if not isinstance(gpu, str) or not _PLAIN.fullmatch(gpu):
        return []
    model = gpu if re.match(r"\w*\d", gpu) else re.sub(r"^\w+[ -]?", "", gpu)
    count = f"{gpus} × " if isinstance(gpus, int) and gpus > 1 else ""
    ends = (word.end() for word in re.finditer(r"\w+", model))
    return [count + model[:end] for end in ends if re.search(r"\d", model[:end])]
