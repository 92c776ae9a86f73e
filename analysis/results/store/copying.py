"""Copies runs from one folder of results to another: checked first, and none is changed."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from analysis.base import keys
from analysis.base.errors import FieldError, HotpathError
from analysis.base.files import write_all
from analysis.base.reading import read_text
from analysis.results.store.keys import HostKeys, text_of
from analysis.results.store.runs import description_of, newest_host, read_about, read_machine
from analysis.study import Study
from analysis.study.config import MachineName

IDLE_GENERATION: Final = 3
"""An idle link may report up to this PCIe generation, and train to a faster one under load."""
Copies = Mapping[Path, Mapping[Path, str]]
"""Texts of the files of each run or capture to write, by its description."""


def copy_runs(copies: Copies) -> list[str]:
    """Write `copies`; returns `<study>/<file>` of each description."""
    for files in copies.values():
        write_all(files)
    return [f"{path.parent.name}/{path.name}" for path in copies]


def missing_runs(
    source: Path,
    results: Path,
    machine: str,
    studies: Mapping[str, Study],
    name: str = "",
    *,
    is_strict: bool = True,
) -> Copies:
    """The runs and captures of `machine` that `results` lacks, there under `name`, by default its
    own. Nothing where `source` has no such machine.

    HotpathError for a bad file, which is left out unless `is_strict`, as is always what a killed
    process left; for a file that `results` has with another content; and for another kind of
    machine.
    """
    if not (source / machine).is_dir():
        return {}
    folder = results / keys.read(MachineName, name or machine, "name of the machine")

    def refuse(path: Path, error: str | Exception) -> None:
        with suppress(HotpathError):
            if not description_of(path).exists():
                return  # a killed process wrote it before its description
        if is_strict:
            raise HotpathError(str(error).replace(f"{source}/", "")) from None

    runs = list(read_machine(source / machine, studies, refuse))
    newest = newest_host(folder) or (newest_host(source / machine) if is_strict else None)
    texts: dict[Path, dict[Path, str]] = {}
    for about in (one.about for one in runs):
        here, there = (root / about.study for root in (source / machine, folder))
        path = there / about.file_name
        require_same_kind(about.host, folder, f"{here / path.name}", newest)
        about.machine = folder.name
        kind: type[Any] = type(about)
        if path.exists() and read_about(path, kind) != about:
            raise FieldError(f"{here / path.name}", f"the content of {path}", "another")
        if not all((there / file).exists() for file in (path.name, *about.files)):
            texts[path] = {there / file: read_text(here / file) for file in about.files}
            texts[path][path] = text_of(about)
    return dict(sorted(texts.items()))


def require_same_kind(
    host: HostKeys, folder: Path, where: str, newest: HostKeys | None = None
) -> None:
    """FieldError if `newest`, by default the host of the newest run in a machine's folder, is of
    another kind of GPU, number of GPUs or SMs, or PCIe link than `host`. What either does not know
    differs from nothing."""
    newest = newest or newest_host(folder)
    if newest is None:
        return
    here = _kind_of(host)
    for key, expected in _kind_of(newest).items():
        if None not in (got := here.get(key), expected) and got != expected:
            wanted = f"{expected!r} as in {folder}; give another name, see --as"
            raise FieldError(f"{where}: {key}", wanted, got)


def _kind_of(host: HostKeys) -> dict[str, object]:
    """The kind of a machine; None for what is unknown, as is the generation of an idle link."""
    known: dict[str, object] = {"gpus": len(host.gpus)}
    for gpu in host.gpus[:1]:
        known |= {"gpu": gpu.gpu, "sms": gpu.sms, "pcie_width": gpu.pcie_width}
        is_trained = (gpu.pcie_generation or 0) > IDLE_GENERATION
        known["pcie_generation"] = gpu.pcie_generation if is_trained else None
    return known
