"""Where libfabric is: its headers, and the shared library modules are linked with."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Final

from analysis import ROOT
from analysis.base.errors import FieldError

MISSING: Final = "libfabric is not installed (Debian and Ubuntu: libfabric-dev; see libfabric=PATH)"
FETCHED: Final = ROOT / "build" / "libfabric"
"""Where env/libfabric unpacks it for those who may not install it."""
PREFIXES: Final = (FETCHED, Path("/usr"), Path("/usr/local"), Path("/opt/amazon/efa"))
HEADER: Final = Path("include", "rdma", "fabric.h")


@dataclass(frozen=True)
class Libfabric:
    """The folder with rdma/fabric.h, and the library's file."""

    include: Path
    library: Path

    @property
    def compile_flags(self) -> list[str]:
        # Not -isystem: for /usr/include that would put the C headers before those of C++.
        return [f"-idirafter{self.include}"]

    @property
    def link_flags(self) -> list[str]:
        """For nvcc. The search path is the old kind, which libraries of the library inherit."""
        folder = self.library.parent
        path = ["-Xlinker", "--disable-new-dtags", "-Xlinker", f"-rpath={folder}"]
        return [f"-L{folder}", f"-l:{self.library.name}", *path]


def find_libfabric(where: str = "auto") -> Libfabric | None:
    """libfabric in the folder `where`, or with `auto` the first that is installed; None without.

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
            return Libfabric(prefix / "include", found[0])
    if where == "auto":
        return None
    expected = f"`auto` or a folder with {HEADER} and lib/libfabric.so"
    raise FieldError("config: libfabric", expected, where)
