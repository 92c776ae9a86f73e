"""Control groups of this process, of both versions: what limits its memory and its CPUs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Final

V1: Final = "cgroup"
V2: Final = "cgroup2"
_ESCAPED: Final = re.compile(r"\\([0-7]{3})")

ROOT: Final = Path("/")


def groups(controller: str, root: Path = ROOT) -> Iterator[tuple[str, Path]]:
    """The version and the folder of each group of this process that has `controller`, and of all
    their ancestors that are mounted.

    No content of the files makes it raise. `root` is the root of the file system, for tests.
    """
    mounts = list(_mounts(controller, root))
    for line in lines_of(root / "proc/self/cgroup"):
        # hierarchy:controllers:path, where the path may have colons, too.
        _, _, named = line.partition(":")
        controllers, colon, path = named.partition(":")
        if colon and (not controllers or controller in controllers.split(",")):
            version = V1 if controllers else V2
            for mount_type, top, point in mounts:
                if mount_type == version and PurePosixPath(path).is_relative_to(top):
                    below = PurePosixPath(path).relative_to(top)
                    for group in (below, *below.parents):
                        yield version, point / group


def _mounts(controller: str, root: Path) -> Iterator[tuple[str, str, Path]]:
    """Type, root and place of each mount of control groups with `controller`."""
    for line in lines_of(root / "proc/self/mountinfo"):
        about, _, options = line.partition(" - ")
        match about.split(), options.split():
            case [_, _, _, top, point, *_], [mount_type, *settings] if (
                mount_type == V2 or controller in ",".join(settings).split(",")
            ):
                yield mount_type, _unescaped(top), root / _unescaped(point).lstrip("/")


def _unescaped(field: str) -> str:
    r"""A field of mountinfo, which has \040 for a blank and \134 for a backslash."""
    return _ESCAPED.sub(lambda code: chr(int(code[1], 8)), field)


def lines_of(path: Path) -> list[str]:
    """The lines of a file; none if it cannot be read."""
    try:
        return path.read_text("utf-8", "surrogateescape").split("\n")
    except (OSError, ValueError):
        return []


def numbers_of(path: Path, key: str = "") -> list[int | None]:
    """The words of a file, or those after the word `key`, as numbers; None for another word."""
    words = " ".join(lines_of(path)).split()
    if key:
        words = words[words.index(key) + 1 :] if key in words else []
    return [int(word) if re.fullmatch("-?[0-9]{1,30}", word) else None for word in words]
