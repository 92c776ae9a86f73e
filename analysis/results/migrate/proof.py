"""The proof that a variant runs as it did at another revision: the same compilers compile both, and
the results are compared.

Objects are compiled like modules, but with each function and datum in a separate section. They
are kept below build/migrate, named by a hash of their sources and settings.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tarfile
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from threading import Lock
from typing import Any, Final

from analysis import BUILD, ROOT
from analysis.base.errors import HotpathError
from analysis.results.migrate.device_code import DeviceCode
from analysis.results.migrate.host_code import Different, compare_programs
from analysis.results.migrate.objects import SECTION_FLAGS, Object, Program
from analysis.results.migrate.python_code import compare_python
from analysis.study import Study, Variant
from analysis.study.source import bindings_files, fingerprint, source_files, timed_files
from analysis.toolchain.compile import compile_object
from analysis.toolchain.compilers import Toolchain
from analysis.toolchain.packages import PACKAGES
from analysis.toolchain.study_settings import (
    SHARED_BINDINGS,
    bindings_name,
    bindings_settings,
    variant_settings,
)

KEPT: Final = BUILD / "migrate"


@contextmanager
def checked_out(revision: str) -> Iterator[Path]:
    """The files of a revision, in a folder that is removed at the end."""
    command = ["git", "-C", str(ROOT), "archive", revision, "--", ":!results", ":!docs", ":!tests"]
    done = subprocess.run(command, capture_output=True, check=True)
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(fileobj=BytesIO(done.stdout)) as archive:
            archive.extractall(folder, filter="data")
        yield Path(folder).resolve()


_PRINT_FINGERPRINTS: Final = """
import json
from analysis.study import discover
try:
    from analysis.study.source import fingerprint
except ImportError:  # where revisions before the six parts have it
    from analysis.source import fingerprint
print(json.dumps([
    [study.name, variant.name, fingerprint(study, variant)]
    for study in discover().values() for variant in study.variants
]))
"""


def fingerprints_at(root: Path) -> dict[tuple[str, str], str]:
    """The hashes of all variants below `root`, a copy of the repository, by its rules;
    by study and variant."""
    done = subprocess.run(
        [sys.executable, "-c", _PRINT_FINGERPRINTS],
        cwd=root,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(root), *sys.path[1:]])},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise HotpathError(f"revision: expected one that computes hashes, got {done.stderr}")
    return {(study, variant): found for study, variant, found in json.loads(done.stdout)}


@dataclass(frozen=True)
class Code:
    """A variant as it is in one copy of the repository, which lies at `root`."""

    study: Study
    variant: Variant
    root: Path
    moved: Callable[[str], str] = str
    """The path that a file of the copy has today, below the root."""
    recorded: str | None = None
    """The hash by the revision's rules; None to compute it by today's."""

    @property
    def fingerprint(self) -> str:
        return self.recorded or fingerprint(self.study, self.variant)

    @property
    def settings(self) -> dict[str, Any]:
        """The settings in study.yaml that decide what runs."""
        one = self.variant
        return {
            "flags": one.flags,
            "constants": dict(one.constants),
            "options": dict(one.options),
            "role": one.role,
            "host_work": one.host_work,
        }

    @property
    def python(self) -> dict[str, Path]:
        """The Python files that are timed, by path; the variant's file by its role."""
        files = timed_files(self.study, self.variant)
        return {
            "the variant" if path == self.variant.path else self.today(path): path
            for path in files
            if path.suffix == ".py"
        }

    @property
    def others(self) -> dict[str, str]:
        """Texts of the other files that study.yaml lists as timed, by path."""
        files = (path for path in self.variant.timed if path.suffix != ".py")
        return {self.today(path): path.read_text() for path in files}

    def today(self, path: Path) -> str:
        """The path that a file or folder of this copy has today, below the root."""
        return self.moved(path.relative_to(self.root).as_posix())


def prove(old: Code, new: Code, toolchain: Toolchain, arch: str) -> dict[str, str]:
    """The compared parts and their digest, as in the provenance; Different if the two differ."""
    compiled = old.variant.is_compiled and new.variant.is_compiled
    for key, value in old.settings.items():
        # Options are macros and nothing else, so machine code says what they change.
        if new.settings[key] != value and not (compiled and key == "options"):
            raise Different(f"study.yaml: {key}: {new.settings[key]}, not {value}")
    if old.others != new.others:
        raise Different("study.yaml: timed: files that are no Python")
    digest = hashlib.sha256(compare_python(old.python, new.python, old.moved))
    compared, apart = "syntax trees", dict[str, str]()
    if compiled:
        recipes = [_recipes(code, toolchain, arch) for code in (old, new)]
        if [each.out for each in recipes[0]] == [each.out for each in recipes[1]]:
            digest.update(repr([each.out.name for each in recipes[1]]).encode())
            return _described(digest.hexdigest(), "sources", toolchain)
        _require_packages(old.variant, new.variant)
        objects = [[each.kept() for each in one] for one in recipes]
        programs = [Program([Object(path) for path in paths]) for paths in objects]
        kernels = [DeviceCode(paths[0]) for paths in objects]
        found = compare_programs(
            programs[0],
            programs[1],
            lambda one, other: kernels[0].compare(one, kernels[1], other),
        )
        digest.update(found.digest.encode())
        compared = found.what
        apart = {"apart_from": found.apart_from} if found.apart_from else {}
    has_kernels = ".cu" in (old.variant.path.suffix, new.variant.path.suffix)
    described = _described(digest.hexdigest(), compared, toolchain)
    return described | apart | ({"arch": arch} if has_kernels else {})


def _described(digest: str, compared: str, toolchain: Toolchain) -> dict[str, str]:
    return {
        "compared": compared,
        "digest": digest,
        "nvcc": toolchain.version,
        "cxx": toolchain.cxx_version,
    }


def _require_packages(*variants: Variant) -> None:
    """Raises Different if a required package is missing: the variant would build as other code."""
    for need in (need for variant in variants for need in variant.needs if need in PACKAGES):
        if unmet := PACKAGES[need].unmet:
            raise Different(f"{unmet}, and without it other code is compiled")


_LOCKS: Final[dict[Path, Lock]] = defaultdict(Lock)
"""A lock per object. The thread that compiles the object holds it."""


@dataclass(frozen=True)
class Recipe:
    """Compiles an object once per hash of its sources and settings."""

    out: Path
    """Its file, named by a hash of the sources and settings."""
    compile_into: Callable[[Path], object]

    def kept(self) -> Path:
        """The object's file, compiled if it does not exist yet."""
        with _LOCKS[self.out]:
            if not self.out.exists():
                KEPT.mkdir(parents=True, exist_ok=True)
                partial = self.out.with_suffix(".partial.o")
                self.compile_into(partial)
                partial.rename(self.out)
        return self.out


def _recipes(code: Code, toolchain: Toolchain, arch: str) -> list[Recipe]:
    """The objects of a module in the order in which they are linked, the variant's first."""
    study, variant = code.study, code.variant
    # Where the copy lies must not be in any string.
    folders = {path.parent for path in [*source_files(study, variant), *bindings_files(study)]}
    today = {folder: code.today(folder) for folder in sorted(folders)}
    mapped = [f"-ffile-prefix-map={folder}={path}" for folder, path in today.items()]
    flags = [*SECTION_FLAGS, *mapped]
    usual = [dict(study.constants), toolchain, SECTION_FLAGS, sorted(today.values())]
    settings = [*usual, code.settings, variant.needs, arch]
    sources = [path for path in source_files(study, variant) if path.suffix != ".py"]

    def compiled(out: Path) -> None:
        settings = variant_settings(variant)
        compile_object(variant.path, settings, toolchain, arch, out, host_flags=flags)

    def bound(out: Path) -> None:
        settings = bindings_settings(study, variant)
        compile_object(study.bindings_path, settings, toolchain, arch, out, host_flags=flags)

    recipes = [Recipe(_named_by("variant", sources, code.root, settings), compiled)]
    if study.bindings:
        is_shared = bindings_name(study, variant) == SHARED_BINDINGS
        read = usual if is_shared else settings
        name = _named_by("bindings", bindings_files(study), code.root, read)
        recipes.append(Recipe(name, bound))
    return recipes


def _named_by(name: str, sources: Sequence[Path], root: Path, settings: object) -> Path:
    """The file of the object that is made of `sources` by `settings`."""
    digest = hashlib.sha256(repr(settings).encode())
    for path in dict.fromkeys(sources):
        digest.update(f"\0{path.relative_to(root)}\0".encode() + path.read_bytes())
    return KEPT / f"{name}-{digest.hexdigest()[:24]}.o"


def commit_named(revision: str) -> str:
    """The hash of the commit that `revision` names; HotpathError where there is none."""
    command = ["git", "-C", str(ROOT), "rev-parse", "--verify", f"{revision}^{{commit}}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise HotpathError(f"revision: expected a commit of this repository, got {revision!r}")
    return done.stdout.strip()
