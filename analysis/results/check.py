"""Check files of results alone: names, keys, checksums, samples, and the kind of machine.

python -m analysis.results.check results/my-h100/h2d_gather/*

Prints what is wrong with each file. A file stands for all files of its run or capture.
"""

import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from analysis.base.cli import fail_in_one_line, program
from analysis.base.errors import FieldError, HotpathError, visible
from analysis.results.store import runs
from analysis.results.store.keys import HostKeys
from analysis.study import Study, discover

IDLE_GENERATION: Final = 3
"""An idle link may report up to this PCIe generation, and train to a faster one under load."""


def require_same_kind(
    host: HostKeys, folder: Path, where: str, newest: HostKeys | None = None
) -> None:
    """FieldError if `newest`, by default the host of the newest run in a machine's folder, is of
    another kind of GPU, number of GPUs or SMs, or PCIe link than `host`. What either does not know
    differs from nothing."""
    expected = _kind_of(newest or runs.newest_host(folder) or host)
    for key, got in _kind_of(host).items():
        if got != expected.get(key, got):
            text = f"{expected[key]!r} as in {folder}; give another name, see --as"
            raise FieldError(f"{where}: {key}", text, got)


def _kind_of(host: HostKeys) -> dict[str, Any]:
    """Facts that identify a kind of machine, without the generation of an idle link."""
    kind: dict[str, Any] = {"gpus": len(host.gpus)}
    for gpu in host.gpus[:1]:
        kind |= gpu.model_dump(include={"gpu", "sms", "pcie_width"}, exclude_none=True)
        if (gpu.pcie_generation or 0) > IDLE_GENERATION:
            kind["pcie_generation"] = gpu.pcie_generation
    return kind


def faults(files: Sequence[Path], studies: Mapping[str, Study]) -> Iterator[str]:
    """A line for each of `files` that is wrong, or that belongs to no run and no capture."""
    new: dict[Path, None] = {}
    for path in files:
        try:
            new[runs.existing_description(path)] = None
        except HotpathError as error:
            yield visible(str(error))
    kinds: dict[Path, HostKeys] = {}
    for about in new:
        folder, machine = about.parent, about.parents[1]
        try:
            if folder not in runs.study_folders(machine.parent):
                raise FieldError(f"{folder}", "a folder <machine>/<study>", folder.name)
            host = runs.read(about, studies.get(folder.name)).about.host
            kind = kinds.setdefault(machine, runs.newest_host(machine, without=[*new]) or host)
            require_same_kind(host, machine, f"{about}", kind)
        except runs.FAULTS as error:
            yield visible(runs.reason(about, error))


def main() -> None:
    parser = program("analysis.results.check", __doc__)
    parser.add_argument("files", nargs="+", type=Path, help="files of runs or captures")
    files = parser.parse_args().files
    found = list(faults(files, discover()))
    print("".join(f"{line}\n" for line in found), end="")
    print(f"{len(files)} files, {len(found)} faults", file=sys.stderr)
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    fail_in_one_line(main)
