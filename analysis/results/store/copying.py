"""Copies runs from one folder of results to another: checked first, and none is changed."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from analysis.base import keys
from analysis.base.errors import FieldError, HotpathError
from analysis.base.files import write_all
from analysis.base.reading import read_bytes, read_text
from analysis.results.store.keys import HostKeys, text_of
from analysis.results.store.runs import (
    description_of,
    newest_host,
    read_about,
    read_study,
    study_folders,
)
from analysis.study import Study
from analysis.study.config import MachineName

IDLE_GENERATION: Final = 3
"""An idle link may report up to this PCIe generation, and train to a faster one under load."""


def copy_runs(
    source: Path, results: Path, studies: Mapping[str, Study], name: str = ""
) -> list[Path]:
    """Copy the runs and captures in `source` that `results` lacks, there under the machine `name`,
    by default its own. Returns their new descriptions.

    HotpathError, before anything is copied, for a bad file, unless `results` has it too or a killed
    process left it; for a file that `results` has with another content; and for another kind of
    machine.
    """

    def refuse(path: Path, error: str | Exception) -> None:
        there = results / path.relative_to(source)
        with suppress(HotpathError):
            if there.is_dir() or read_bytes(there) == read_bytes(path):
                return
        with suppress(HotpathError):
            if not description_of(path).exists():
                return
        raise HotpathError(str(error).replace(f"{source}/", "")) from None

    texts: dict[Path, Mapping[Path, str]] = {}
    for here in study_folders(source, refuse):
        machine = keys.read(MachineName, name or here.parent.name, "name of the machine")
        there = results / machine / here.name
        newest = newest_host(there.parent) or newest_host(here.parent)
        for about in (one.about for one in read_study(here, studies.get(here.name), refuse)):
            old, new = here / about.file_name, there / about.file_name
            require_same_kind(about.host, there.parent, f"{old}", newest)
            about.machine = machine
            kind: type[Any] = type(about)
            if new.exists() and read_about(new, kind) != about:
                raise FieldError(f"{old}", f"the content of {new}", "another")
            if not all((there / file).exists() for file in (new.name, *about.files)):
                beside = {there / file: read_text(here / file) for file in about.files}
                texts[new] = {**beside, new: text_of(about)}
    for files in texts.values():
        write_all(files)
    return sorted(texts)


def require_same_kind(
    host: HostKeys, folder: Path, where: str, newest: HostKeys | None = None
) -> None:
    """FieldError if `newest`, by default the host of the newest run in a machine's folder, is of
    another kind of GPU, number of GPUs or SMs, or PCIe link than `host`. What either does not know
    differs from nothing."""
    newest = newest or newest_host(folder)
    kind, expected = _kind_of(host), _kind_of(newest) if newest else {}
    for key, got in kind.items():
        if (wanted := expected.get(key, got)) != got:
            text = f"{wanted!r} as in {folder}; give another name, see --as"
            raise FieldError(f"{where}: {key}", text, got)


def _kind_of(host: HostKeys) -> dict[str, Any]:
    """What is known of the kind of a machine, without the generation of an idle link."""
    kind: dict[str, Any] = {"gpus": len(host.gpus)}
    for gpu in host.gpus[:1]:
        kind |= gpu.model_dump(include={"gpu", "sms", "pcie_width"}, exclude_none=True)
        if (gpu.pcie_generation or 0) > IDLE_GENERATION:
            kind["pcie_generation"] = gpu.pcie_generation
    return kind
