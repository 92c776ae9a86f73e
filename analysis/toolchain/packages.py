"""Libraries that a variant is linked with if it needs them: PyTorch and RMM, which are Python
packages, and libfabric.

A variant that needs a package must also build without it: it asks with __has_include.
"""

from __future__ import annotations

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
from analysis.base.errors import FieldError

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


PACKAGES: Final = {
    "torch": Package("torch", "torch", ("torch",), _torch),
    "rmm": Package("RMM", "librmm", ("librmm-cu13", "librmm-cu12"), _rmm, oldest=(26, 6)),
    "cupy": Package("CuPy", "cupy", ("cupy-cuda13x", "cupy-cuda12x", "cupy")),
}
"""Packages by their names in `needs`."""


def package_flags(needs: Iterable[str]) -> Flags:
    """Flags of all usable packages among `needs`."""
    flags: Flags = [], []
    for package in (PACKAGES[need] for need in needs if need in PACKAGES):
        if (root := package.root) and not package.unmet:
            for known, more in zip(flags, package.flags(root), strict=True):
                known += more
    return flags


def package_versions(needs: Iterable[str]) -> dict[str, str | None]:
    """Versions of the packages among `needs`. A new version rebuilds a variant."""
    return {need: PACKAGES[need].version for need in needs if need in PACKAGES}


NO_LIBFABRIC: Final = (
    "libfabric is not installed (Debian and Ubuntu: libfabric-dev; see libfabric=PATH)"
)
HEADER: Final = Path("include", "rdma", "fabric.h")
PREFIXES: Final = (
    BUILD / "libfabric",  # where env/libfabric unpacks it
    *(Path("/usr"), Path("/usr/local"), Path("/opt/amazon/efa")),
)


def libfabric_flags(where: str = "auto") -> Flags | None:
    """Flags of libfabric in the folder `where`, or with `auto` of the first that is installed; None
    without one.

    The folder is a prefix with include/ and lib/, or what `dpkg -x` makes of packages, which have
    their files under usr/. One with headers alone is used with the system's library. FieldError
    where a named folder has no headers or no library is found.
    """
    asked = PREFIXES if where == "auto" else (Path(where).resolve(),)
    prefixes = [path for prefix in asked for path in (prefix, prefix / "usr")]
    if prefix := next((path for path in prefixes if (path / HEADER).is_file()), None):
        places = product((prefix, *prefixes, *PREFIXES), ("lib*", "lib/x86_64-linux-gnu"))
        libraries = (sorted(place.glob(f"{names}/libfabric.so*")) for place, names in places)
        if found := next(filter(None, libraries), None):
            folder = found[0].parent
            # The search path is the old kind, which libraries of the library inherit.
            path = ["-Xlinker", "--disable-new-dtags", "-Xlinker", f"-rpath={folder}"]
            # Not -isystem: for /usr/include that would put the C headers before those of C++.
            includes = [f"-idirafter{prefix / 'include'}"]
            return includes, [f"-L{folder}", f"-l:{found[0].name}", *path]
    if where == "auto":
        return None
    expected = f"`auto` or a folder with {HEADER} and lib/libfabric.so"
    raise FieldError("config: libfabric", expected, where)
