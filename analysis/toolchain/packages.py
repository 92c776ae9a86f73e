"""Libraries that a variant is linked with if it needs them: PyTorch and RMM, which are Python
packages, and libfabric.

A variant that needs a package must also build without it: it asks with __has_include. One that
needs libfabric is built only with it.
"""

import importlib.metadata
import importlib.util
import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Final

from analysis import BUILD

Flags = tuple[list[str], list[str]]
"""Flags for compiling, and for linking with nvcc."""


@dataclass(frozen=True)
class Package:
    """A package: its name, its module, the distributions that may contain it, a function from its
    folder to its flags, and the oldest supported version (major, minor)."""

    title: str
    module: str
    distributions: tuple[str, ...]
    flags: Callable[[Path], Flags] = lambda root: ([], [])
    oldest: tuple[int, int] = (0, 0)

    @property
    def root(self) -> Path | None:
        """The folder of the installed module, or None; imports nothing."""
        spec = importlib.util.find_spec(self.module)
        return Path(spec.origin).parent if spec and spec.origin else None

    @property
    def version(self) -> str | None:
        """The installed version, or None."""
        for name in self.distributions:
            with suppress(importlib.metadata.PackageNotFoundError):
                return importlib.metadata.version(name)
        return None

    @property
    def unmet(self) -> str | None:
        """The reason why nothing can be built with it here, or None."""
        if self.root is None:
            return f"{self.title} is not installed"
        parts = re.findall(r"\d+", self.version or "")
        if parts and [*map(int, parts[:2])] < [*self.oldest]:
            needed = ".".join(map(str, self.oldest))
            return f"needs {self.title} {needed} or newer, {self.version} is installed"
        return None


def _torch(root: Path) -> Flags:
    return ["-isystem", f"{root}/include"], [*_linked(root / "lib"), "-lc10_cuda", "-lc10"]


def _rmm(root: Path) -> Flags:
    # Its logger is another package, which librmm.so finds only if it is loaded already.
    logger = root.parent / "rapids_logger"
    # The CCCL that its headers need lies beside them. -I, so that it comes before the toolkit's.
    includes = [f"-I{root}/include/rapids", "-isystem", f"{root}/include"]
    link = [*_linked(root / "lib64"), "-lrmm", *_linked(logger / "lib64"), "-lrapids_logger"]
    # nvcc puts what is for the linker before all libraries.
    return [*includes, "-isystem", f"{logger}/include"], [*link, "-Xlinker=--no-as-needed"]


def _linked(folder: Path) -> list[str]:
    """Where the linker finds a library, and where the loader will."""
    return [f"-L{folder}", f"-Xlinker=-rpath,{folder}"]


HEADER: Final = Path("include", "rdma", "fabric.h")
PREFIXES: Final = (
    BUILD / "libfabric",  # where env/libfabric unpacks it
    *(Path("/usr"), Path("/usr/local"), Path("/opt/amazon/efa")),
)


class Libfabric(Package):
    """libfabric in the first of PREFIXES with its headers; one with headers alone is used with a
    library of the others."""

    @property
    def root(self) -> Path | None:
        prefixes = (prefix for prefix in PREFIXES if (prefix / HEADER).is_file())
        return next((prefix for prefix in prefixes if _libfabric_file(prefix)), None)

    @property
    def version(self) -> str | None:
        return str(_libfabric_file(self.root)) if self.root else None


def _libfabric_file(prefix: Path) -> Path | None:
    places = product((prefix, *PREFIXES), ("lib*", "lib/x86_64-linux-gnu"))
    found = (sorted(place.glob(f"{names}/libfabric.so*")) for place, names in places)
    return next((files[0] for files in found if files), None)


def _libfabric(root: Path) -> Flags:
    file = _libfabric_file(root) or Path()
    # The search path is the old kind, which libraries of the library inherit.
    path = ["-Xlinker", "--disable-new-dtags", "-Xlinker", f"-rpath={file.parent}"]
    # Not -isystem: for /usr/include that would put the C headers before those of C++.
    return [f"-idirafter{root / 'include'}"], [f"-L{file.parent}", f"-l:{file.name}", *path]


PACKAGES: Final[dict[str, Package]] = {
    "torch": Package("torch", "torch", ("torch",), _torch),
    "rmm": Package("RMM", "librmm", ("librmm-cu13", "librmm-cu12"), _rmm, oldest=(26, 6)),
    "cupy": Package("CuPy", "cupy", ("cupy-cuda13x", "cupy-cuda12x", "cupy")),
    "libfabric": Libfabric("libfabric (libfabric-dev, or env/libfabric)", "", (), _libfabric),
}
"""Packages by their names in `needs`."""


def package_flags(needs: Iterable[str]) -> Flags:
    """Flags of all usable packages among `needs`."""
    usable = [PACKAGES[need] for need in needs if need in PACKAGES and not PACKAGES[need].unmet]
    flags = [package.flags(package.root) for package in usable if package.root]
    return [w for words, _ in flags for w in words], [w for _, words in flags for w in words]


def package_versions(needs: Iterable[str]) -> dict[str, str | None]:
    """Versions of the packages among `needs`. A new version rebuilds a variant."""
    return {need: PACKAGES[need].version for need in needs if need in PACKAGES}
