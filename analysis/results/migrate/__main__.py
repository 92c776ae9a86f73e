"""Carry committed results over a refactoring that left alone the code that ran.

    python -m analysis.results.migrate REVISION [STUDY ...] [--map FILE]

Results that were fresh at REVISION and are stale now are fresh again where the code of today is
proved to be the same: every variant is compiled as it was and as it is, and compared. Provenance
keeps both hashes and the proof. What differs stays stale, and a line names the first function that
does. With a map, results are renamed first, as study.yaml has been since.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from os import cpu_count
from pathlib import Path
from typing import Any

from analysis import ROOT
from analysis.base.cli import existing_folder, fail_in_one_line, program
from analysis.base.errors import HotpathError, require_known
from analysis.base.files import write_whole
from analysis.results.migrate.host_code import Different
from analysis.results.migrate.proof import (
    Code,
    checked_out,
    commit_named,
    fingerprints_at,
    prove,
)
from analysis.results.migrate.renaming import Renames, read_renames, rename_results
from analysis.results.store.folders import machines, variant_files
from analysis.results.store.provenance import provenance_text, read_provenance
from analysis.study import Study, discover
from analysis.toolchain.compilers import DEFAULT_ARCH, find_toolchain

VariantName = tuple[str, str]
"""A study's name and a variant's."""


@dataclass
class Outcome:
    """How many runs were carried over, how many were stale before, and why others are stale now."""

    carried: int = 0
    stale: int = 0
    different: dict[VariantName, str] = field(default_factory=dict)
    apart: dict[VariantName, str] = field(default_factory=dict)
    """The first differing function of a variant's bindings, if the timed functions are equal."""
    compilers: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Runs carried over by a proof of another compiler than theirs: by their compiler and that."""


def migrate(
    revision: str, results: Path, names: list[str], renames: Renames | None = None
) -> Outcome:
    """Write today's hash into the provenance of all runs that are proved to be of today's code,
    once results have the names of today."""
    studies = discover()
    for name in names:
        require_known("study", name, sorted(studies))
    outcome = Outcome()
    revision = commit_named(revision)
    renames = renames or Renames()
    with checked_out(revision) as root:
        before = discover(root)
        rename_results(results, renames, {name: one.folder for name, one in before.items()})
        files = [path for machine in machines(results) for path in variant_files(results, machine)]
        files = [path for path in files if not names or path.parent.name in names]
        changed = _changed(before, studies, root, renames)
        wanted = {key: pair for key, pair in changed.items() if _has_runs(files, key, pair[0])}
        proofs = _proofs(wanted, outcome)
        for path in files:
            key = path.parent.name, path.stem
            if key in proofs:
                old_hash, new_hash = (code.fingerprint for code in changed[key])
                proof = {"revision": revision, **proofs[key]}
                carry(path, old_hash, new_hash, proof, outcome)
    return outcome


def _changed(
    before: Mapping[str, Study], studies: Mapping[str, Study], root: Path, renames: Renames
) -> dict[VariantName, tuple[Code, Code]]:
    """The variants that have another hash than they had, by their names of today, as they were
    below `root` and as they are."""
    found = {}
    recorded = fingerprints_at(root)
    for study in before.values():
        for variant in study.variants:
            name = renames.variant(study.name, variant.name)
            if name[0] not in studies or name[1] not in studies[name[0]].variant_names:
                continue
            old = Code(study, variant, root, renames.file, recorded[study.name, variant.name])
            new = Code(studies[name[0]], studies[name[0]].variant(name[1]), ROOT)
            if old.fingerprint != new.fingerprint:
                found[name] = old, new
    return found


def _has_runs(files: list[Path], key: VariantName, old: Code) -> bool:
    """Whether any machine has runs of the variant that were fresh before."""
    paths = (path for path in files if (path.parent.name, path.stem) == key)
    return any(
        entry["source_sha256"] == old.fingerprint for path in paths for entry in _entries(path)
    )


def _entries(path: Path) -> list[dict[str, Any]]:
    provenance = read_provenance(path.with_suffix(".json"))
    return [provenance, *provenance["runs"]]


def _proofs(
    wanted: Mapping[VariantName, tuple[Code, Code]], outcome: Outcome
) -> dict[VariantName, dict[str, str]]:
    """The proof of each unchanged variant; `outcome` notes the others."""
    toolchain = find_toolchain()

    def proved(key: VariantName) -> dict[str, str] | str:
        try:
            return prove(*wanted[key], toolchain, DEFAULT_ARCH)
        except (Different, HotpathError) as error:
            return str(error)

    with ThreadPoolExecutor(cpu_count()) as threads:
        found = dict(zip(wanted, threads.map(proved, wanted), strict=True))
    outcome.apart |= {
        key: proof["apart_from"]
        for key, proof in found.items()
        if not isinstance(proof, str) and "apart_from" in proof
    }
    outcome.different |= {key: why for key, why in found.items() if isinstance(why, str)}
    return {key: proof for key, proof in found.items() if not isinstance(proof, str)}


def carry(path: Path, old: str, new: str, proof: Mapping[str, str], outcome: Outcome) -> None:
    """Write the hash `new` into the runs and captures of `path` that have the hash `old`; those of
    kernels for an architecture other than that of the proof stay stale."""
    file = path.with_suffix(".json")
    provenance = read_provenance(file)

    def carried(entry: dict[str, Any]) -> dict[str, Any]:
        arch = (entry.get("compiler") or {}).get("arch")
        if arch is not None and arch != proof.get("arch", arch):
            outcome.stale += 1
            return entry
        captures = {
            kind: capture | {"source_sha256": new}
            if capture.get("source_sha256") == old
            else capture
            for kind, capture in entry.get("captures", {}).items()
        }
        if entry["source_sha256"] != old:
            outcome.stale += entry["source_sha256"] != new
            return entry | ({"captures": captures} if captures else {})
        outcome.carried += 1
        outcome.compilers.update(_other_compilers(entry, proof))
        note = {"from": old, "to": new, "proof": dict(proof)}
        return {
            **entry,
            "source_sha256": new,
            "migrated": [*entry.get("migrated", []), note],
            "captures": captures,
        }

    runs = [carried(entry) for entry in provenance["runs"]]
    write_whole(file, provenance_text(carried(provenance) | {"runs": runs}))


def _other_compilers(entry: Mapping[str, Any], proof: Mapping[str, str]) -> list[tuple[str, str]]:
    """The C++ compilers of a run and of the proof, where they are of two versions."""
    used = (entry.get("compiler") or {}).get("cxx")
    if used is None or proof["compared"] in ("syntax trees", "sources"):
        return []
    versions = [name.split()[-1] for name in (used, proof["cxx"])]
    return [(versions[0], versions[1])] if versions[0] != versions[1] else []


def main() -> None:
    parser = program("analysis.results.migrate", __doc__)
    parser.add_argument("revision", help="the commit whose fresh results are carried over")
    parser.add_argument("studies", nargs="*", metavar="study", help="only these studies")
    parser.add_argument("--map", type=Path, help="YAML file with names that changed since")
    parser.add_argument(
        "--results", type=existing_folder, default=ROOT / "results", help="folder of the machines"
    )
    arguments = parser.parse_args()
    renames = read_renames(arguments.map) if arguments.map else None
    outcome = migrate(arguments.revision, arguments.results, arguments.studies, renames)
    for (study, variant), why in sorted(outcome.different.items()):
        print(f"{study}/{variant} differs: {why}")
    for (study, variant), why in sorted(outcome.apart.items()):
        print(f"{study}/{variant} is the same when timed, its bindings differ: {why}")
    for (used, proved), count in sorted(outcome.compilers.items()):
        print(
            f"{count} of the runs carried over were compiled by C++ compiler {used}, the proof by"
            f" {proved}; to prove it for {used}, repeat this with CXX set to it"
        )
    print(
        f"{outcome.carried} runs carried over, {outcome.stale} stale as before; variants that "
        f"differ: {len(outcome.different)}"
    )


if __name__ == "__main__":
    fail_in_one_line(main)
