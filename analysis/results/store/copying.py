"""Copies runs from one folder of results to another: checked first, and none is changed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from analysis.base import keys
from analysis.base.errors import FieldError, HotpathError
from analysis.base.files import write_all
from analysis.base.reading import read_text
from analysis.results.store.folders import ABOUT, described, listed, require_machine, require_study
from analysis.results.store.keys import CaptureFile, HostKeys, RunFile, text_of
from analysis.results.store.runs import bad_files, description_of, newest_host, read_about
from analysis.study import Study
from analysis.study.config import MachineName

IDLE_GENERATION: Final = 3
"""An idle link may report up to this PCIe generation, and train to a faster one under load."""


def copy_runs(
    source: Path,
    results: Path,
    machine: str,
    studies: Mapping[str, Study],
    name: str = "",
    *,
    is_strict: bool = True,
) -> Iterator[str]:
    """Copy the runs and captures of `machine` that `results` lacks, there under `name`, by default
    its own; yields `<study>/<file>` of each. Nothing where `source` has no such machine.

    HotpathError before anything is copied: for a bad file, which is left out unless `is_strict`, as
    is always what a killed process left; for a file that `results` has with another content; and
    for another kind of machine.
    """
    if not (source / machine).is_dir():
        return
    refused = dict(_bad_files(source / machine, studies))
    bad = [error for path, error in refused.items() if not _is_left_over(path)]
    if is_strict and bad:
        raise HotpathError(bad[0].replace(f"{source}/", ""))
    texts: dict[Path, dict[Path, str]] = {}
    folder = results / keys.read(MachineName, name or machine, "name of the machine")
    newest = newest_host(folder) or (newest_host(source / machine) if is_strict else None)
    for study in listed(source / machine):
        for suffix in ABOUT if study not in refused else ():
            for path in described(study, suffix):
                if path in refused:
                    continue
                about = _about(path, suffix)
                require_same_kind(about.host, folder, str(path), newest)
                about.machine = folder.name
                there = folder / study.name / path.name
                if there.exists() and _about(there, suffix) != about:
                    raise HotpathError(f"{path}: expected the content of {there}, got another")
                if not all((there.parent / n).exists() for n in (there.name, *about.files)):
                    files = {there.parent / n: read_text(study / n) for n in about.files}
                    texts[there] = files | {there: text_of(about)}
    for there, files in sorted(texts.items()):
        write_all(files)
        yield f"{there.parent.name}/{there.name}"


def _about(path: Path, suffix: str) -> RunFile | CaptureFile:
    if suffix == ABOUT[0]:
        return read_about(path, RunFile)
    return read_about(path, CaptureFile)


def _is_left_over(path: Path) -> bool:
    """Whether a bad file is one that a killed process wrote before its description."""
    with suppress(HotpathError):
        return not description_of(path).exists()
    return False


def _bad_files(folder: Path, studies: Mapping[str, Study]) -> Iterator[tuple[Path, str]]:
    """The files and folders of a machine that cannot be copied, with the reason."""
    require_machine(folder)
    for inner in listed(folder):
        try:
            require_study(inner)
        except HotpathError as error:
            yield inner, str(error)
        else:
            yield from bad_files(inner, studies.get(inner.name))


def require_same_kind(
    host: HostKeys, folder: Path, where: str, newest: HostKeys | None = None
) -> None:
    """FieldError if `newest`, by default the host of the newest run in a machine's folder, is of
    another kind of GPU, number of GPUs or SMs, or PCIe link than `host`."""
    newest = newest or newest_host(folder)
    if newest is None:
        return
    here = _kind_of(host)
    for key, expected in _kind_of(newest).items():
        got = here.get(key)
        if got is not None and expected is not None and expected != got:
            raise FieldError(
                f"{where}: {key}", f"{expected!r} as in {folder}; give another name, see --as", got
            )


def _kind_of(host: HostKeys) -> dict[str, object]:
    """The kind of a machine; None for what is unknown, as is the generation of an idle link."""
    known: dict[str, object] = {"gpus": len(host.gpus)}
    for gpu in host.gpus[:1]:
        known |= {"gpu": gpu.gpu, "sms": gpu.sms, "pcie_width": gpu.pcie_width}
        is_trained = (gpu.pcie_generation or 0) > IDLE_GENERATION
        known["pcie_generation"] = gpu.pcie_generation if is_trained else None
    return known
