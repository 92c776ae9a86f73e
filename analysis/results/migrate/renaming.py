"""Renames results as study.yaml renamed what they are of: studies, variants, cases and metrics.

Samples are read and written as a run's are. A claim's bound keeps its runs: its digest becomes that
of the same comparison with the new names.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from analysis.base import keys
from analysis.base.errors import HotpathError
from analysis.base.files import write_whole
from analysis.base.keys import Keys, Name, key
from analysis.base.schema import read_yaml
from analysis.results.store.folders import KINDS, machines, samples_files
from analysis.results.store.provenance import provenance_text
from analysis.results.store.results import load_variant
from analysis.results.store.samples import text_checksum, to_text
from analysis.study.claims.bounds import digests

Names = Mapping[str, Name]
"""New names by old ones."""

CASES: Final = ("case", "over_case", "also")
VARIANTS: Final = ("of", "over")
"""Keys of a claim's comparison whose values are ids of cases, and names of variants."""


@dataclass(frozen=True)
class Within(Keys):
    """The renames of one study."""

    variants: Names = key("Variants, by their old names.", factory=dict)
    metrics: Names = key("Metrics.", factory=dict)
    keys: Names = key("Keys of the cases.", factory=dict)
    values: Mapping[str, Mapping[str, str | int]] = key(
        "Words that are values of a case, by the key's current name.", factory=dict
    )

    def case(self, id: str) -> str:
        """The id of a case by its new keys and values."""
        return ",".join(map(self._pair, id.split(","))) if id else id

    def _pair(self, pair: str) -> str:
        key, _, value = pair.partition("=")
        key = self.keys.get(key, key)
        return f"{key}={self.values.get(key, {}).get(value, value)}"

    def comparisons(self, data: Any, key: str = "") -> Any:
        """A part of study.yaml's claims with the new names; `key` is the one that it is of."""
        if isinstance(data, dict):
            return {name: self.comparisons(value, name) for name, value in data.items()}
        if isinstance(data, list):
            return [self.comparisons(one, key) for one in data]
        if not isinstance(data, str):
            return data
        if key in CASES:
            return self.case(data)
        if key in VARIANTS:
            return self.variants.get(data, data)
        return self.metrics.get(data, data) if key == "metric" else data

    def headline(self, case: Mapping[str, str | int]) -> dict[str, str | int]:
        """The headline of study.yaml."""
        names = {self.keys.get(key, key): value for key, value in case.items()}
        return {key: self.values.get(key, {}).get(str(v), v) for key, v in names.items()}


@dataclass(frozen=True)
class Renames(Keys):
    """The renames in a map file; all other names stay."""

    studies: Names = key("Studies, by their old names.", factory=dict)
    files: Mapping[str, str] = key("Moved files and folders, by their old paths.", factory=dict)
    within: Mapping[str, Within] = key("Renames inside a study, by its name now.", factory=dict)

    def study(self, old: str) -> str:
        return self.studies.get(old, old)

    def of(self, study: str) -> Within:
        """The renames in a study, by its name of today."""
        return self.within.get(study, Within())

    def variant(self, study: str, old: str) -> tuple[str, str]:
        """The study and the name that a variant has today."""
        today = self.study(study)
        return today, self.of(today).variants.get(old, old)

    def file(self, old: str) -> str:
        """Today's path of a file or folder, below the root."""
        for moved, today in self.files.items():
            if old == moved or old.startswith(f"{moved}/"):
                return today + old.removeprefix(moved)
        folder, study, *rest = [*old.split("/", 2), ""][:3]
        is_renamed = folder == "kernels" and study in self.studies
        return "/".join([folder, self.study(study), *filter(None, rest)]) if is_renamed else old


def read_renames(path: Path) -> Renames:
    """Read a map file; FieldError names its first invalid field."""
    return keys.read(Renames, read_yaml(path) or {}, path.name)


def rename_results(results: Path, renames: Renames, folders: Mapping[str, Path]) -> int:
    """Rename all results under `results`; `folders` are those of the studies by their old names, as
    they were at the revision. Returns the number of variants in the studies that the map names.

    HotpathError, before anything is written, where two would have the same name.
    """
    changed: dict[Path, dict[str, str]] = {}
    for machine in machines(results):
        for folder in sorted(path for path in (results / machine).iterdir() if path.is_dir()):
            within = renames.of(renames.study(folder.name))
            if renames.study(folder.name) == folder.name and within == Within():
                continue
            bounds = _renamed_bounds(folders.get(folder.name), within)
            for path in samples_files(folder):
                changed[path] = _renamed(path, renames, within, bounds)
    targets = [name for files in changed.values() for name in files]
    if len(targets) != len(set(targets)):
        raise HotpathError("map: expected another new name for every old one")
    leaving = {str(one) for path in changed for one in _files_of(path)}
    for name in targets:
        if name not in leaving and Path(name).exists():
            raise HotpathError(f"map: {name}: expected a name that no result has")
    for name in leaving - set(targets):
        Path(name).unlink()
    for name, text in (item for files in changed.values() for item in files.items()):
        write_whole(Path(name), text)
    for folder in {path.parent for path in changed}:
        if not any(folder.iterdir()):
            folder.rmdir()
    return len(changed)


def _files_of(path: Path) -> list[Path]:
    found = [path.with_name(f"{path.stem}{kind}") for kind in KINDS]
    return [one for one in found if one.exists()]


def _renamed(
    path: Path, renames: Renames, within: Within, bounds: Mapping[str, str]
) -> dict[str, str]:
    """The new files of a variant: their texts by their paths."""
    loaded = load_variant(path)
    study, variant = renames.variant(loaded.study, loaded.variant)
    target = path.parents[1] / study / variant
    samples = [
        replace(
            sample,
            study=study,
            variant=variant,
            case=within.case(sample.case),
            metric=within.metrics.get(sample.metric, sample.metric),
        )
        for sample in loaded.samples
    ]
    text = to_text(samples)
    runs = [_provenance(run, within, bounds) for run in loaded.provenance["runs"]]
    provenance = _provenance(loaded.provenance, within, bounds)
    provenance |= {"study": study, "variant": variant, "samples_sha256": text_checksum(text)}
    provenance["runs"] = runs
    found = {f"{target}{KINDS[0]}": text, f"{target}{KINDS[1]}": provenance_text(provenance)}
    for kind in KINDS[2:]:
        if (other := path.with_name(f"{path.stem}{kind}")).exists():
            found[f"{target}{kind}"] = _with_cases(other.read_text(), within)
    return found


def _provenance(
    entry: Mapping[str, Any], within: Within, bounds: Mapping[str, str]
) -> dict[str, Any]:
    renamed = dict(entry)
    if "beside" in entry:
        renamed["beside"] = [within.variants.get(name, name) for name in entry["beside"]]
    if "captures" in entry:
        renamed["captures"] = {
            kind: _with_bounds(_with_case(capture, within), bounds)
            for kind, capture in entry["captures"].items()
        }
    return _with_bounds(renamed, bounds)


def _with_case(capture: Mapping[str, Any], within: Within) -> dict[str, Any]:
    return {**capture, **({"case": within.case(capture["case"])} if "case" in capture else {})}


def _with_bounds(entry: dict[str, Any], bounds: Mapping[str, str]) -> dict[str, Any]:
    if "bounds" not in entry:
        return entry
    named = {
        claim: " ".join(bounds.get(digest, digest) for digest in digests_of.split())
        for claim, digests_of in entry["bounds"].items()
    }
    return entry | {"bounds": named}


def _renamed_bounds(folder: Path | None, within: Within) -> dict[str, str]:
    """The digests of comparisons with the new names, by those with the old ones."""
    if folder is None:
        return {}
    data = read_yaml(folder / "study.yaml")
    claims = data.get("claims") or []
    was = digests({"headline": data["headline"], "claims": claims})
    renamed = {"headline": within.headline(data["headline"]), "claims": within.comparisons(claims)}
    now = digests(renamed)
    return {old: new for id in was for old, new in zip(was[id], now[id], strict=True)}


def _with_cases(text: str, within: Within) -> str:
    """A capture's table with the new ids in its column `case`, where it has one."""
    rows = list(csv.reader(io.StringIO(text, newline="")))
    if not rows or "case" not in rows[0] or not (within.keys or within.values):
        return text
    column = rows[0].index("case")
    for row in rows[1:]:
        row[column] = within.case(row[column])
    out = io.StringIO(newline="")
    csv.writer(out, lineterminator="\n").writerows(rows)
    return out.getvalue()
