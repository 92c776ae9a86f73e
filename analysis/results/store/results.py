"""The results of one machine: samples with their provenance, kept small and consistent."""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

from analysis.base import keys
from analysis.base.errors import HotpathError
from analysis.base.files import write_whole
from analysis.base.reading import decoded, read_bytes
from analysis.base.schema import read_json
from analysis.base.statistics import MIN_RUNS
from analysis.results.store import METHOD_VERSION
from analysis.results.store.consistency import check_samples
from analysis.results.store.folders import DESCRIPTION, MACHINE_LIMIT_BYTES, variant_files
from analysis.results.store.keys import MachineKeys
from analysis.results.store.provenance import (
    CorruptResults,
    Provenance,
    of_run,
    provenance_text,
    read_provenance,
)
from analysis.results.store.samples import (
    KEPT_RUNS,
    Sample,
    parse_samples,
    text_checksum,
    to_text,
)


@dataclass(frozen=True)
class VariantResults:
    """Samples of one variant on one machine, and the provenance of each of their runs."""

    machine: str
    study: str
    variant: str
    samples: list[Sample]
    provenance: Provenance

    def run_provenance(self) -> dict[str, Provenance]:
        """Provenance by run, newest first."""
        return {entry["run"]: entry for entry in (self.provenance, *self.provenance["runs"])}

    def fresh_runs(self, source_sha256: str) -> list[str]:
        """Runs measured from this source with the current method, newest first."""
        return [
            run
            for run, entry in self.run_provenance().items()
            if entry["source_sha256"] == source_sha256 and entry["method_version"] == METHOD_VERSION
        ]


def load_variant(path: Path) -> VariantResults:
    """Read `<variant>.csv` and its provenance, and hold the one against the other.

    Raises HotpathError, naming the file, and of samples the line.
    """
    provenance = read_provenance(path.with_suffix(".json"))
    content = read_bytes(path)
    if hashlib.sha256(content).hexdigest() != provenance["samples_sha256"]:
        raise CorruptResults(f"{path}: checksum differs from the one in {path.stem}.json")
    machine, study = path.parts[-3:-1]
    names, found = (study, path.stem), (provenance["study"], provenance["variant"])
    if found != names:
        beside = path.with_suffix(".json")
        raise CorruptResults(f"{beside}: study, variant: expected {names}, got {found}")
    samples = parse_samples(path, decoded(path, content))
    loaded = VariantResults(machine, study, path.stem, samples, provenance)
    check_samples(path, samples, loaded.run_provenance())
    return loaded


def read_machine(folder: Path) -> dict[str, Any]:
    """A machine's description, its keys checked; HotpathError names the file and the key."""
    path = folder / DESCRIPTION
    described: dict[str, Any] = read_json(path)
    keys.read(MachineKeys, described, str(path))
    return described


class Draft:
    """The next state of one machine's results: made in memory, so that it can be written whole."""

    def __init__(self, root: Path, machine: str) -> None:
        self._folder = root / machine
        self._changed: dict[Path, VariantResults] = {}
        self.texts: dict[str, str] = {}
        """Texts that differ from the files on disk, by path below the root."""

    def put(self, name: str, text: str) -> None:
        """Set a file of the machine; `name` is its path in the machine's folder."""
        self.texts[f"{self._folder.name}/{name}"] = text

    def add_run(
        self, study: str, variant: str, samples: Sequence[Sample], provenance: Provenance
    ) -> None:
        """Put the samples of one run before those of earlier runs of this variant with the same
        method version. At most KEPT_RUNS runs are kept, see `_superfluous`."""
        path = self._folder / study / f"{variant}.csv"
        earlier: list[Sample] = []
        runs: dict[str, Provenance] = {}
        captures: dict[str, Any] = {}
        if path.exists():
            old = load_variant(path)
            earlier, runs = old.samples, old.run_provenance()
            captures = old.provenance.get("captures", {})
        runs.pop(provenance["run"], None)
        method = provenance["method_version"]
        kept = [run for run, entry in runs.items() if entry["method_version"] == method]
        while len(kept) >= KEPT_RUNS:
            all_runs = {provenance["run"]: provenance, **{run: runs[run] for run in kept}}
            kept.remove(_superfluous(all_runs, [*samples, *earlier]))
        # Captures outlive a run: each entry records the source it was taken from.
        current = {**provenance, "captures": {**captures, **provenance.get("captures", {})}}
        rows = [*samples, *(s for s in earlier if s.run in kept)]
        self._set(path, variant, rows, current, [runs[run] for run in kept])

    def _set(
        self,
        path: Path,
        variant: str,
        samples: list[Sample],
        provenance: Provenance,
        runs: Sequence[Provenance],
    ) -> None:
        current, *earlier = map(of_run, (provenance, *runs))
        text = to_text(samples)
        study = path.parent.name
        of_file = {"study": study, "variant": variant, "samples_sha256": text_checksum(text)}
        document = {**current, **of_file, "runs": earlier}
        self._changed[path] = VariantResults(
            self._folder.name, study, variant, samples, {**current, "runs": earlier}
        )
        self.put(f"{study}/{variant}.csv", text)
        self.put(f"{study}/{variant}.json", provenance_text(document))

    def shrink(self, limit: int = MACHINE_LIMIT_BYTES) -> None:
        """Drop extra runs of the machine until its folder is within `limit` bytes.

        Runs of other code than the newest are dropped first. As long as variants have more than
        MIN_RUNS, those with the most newer ones of their variant are next; then runs that no
        other variant has as its newest, then the oldest. HotpathError if one run of each
        variant is too much.
        """
        held: dict[Path, VariantResults] = {}
        while self._size() > limit:
            if not held:
                paths = {*variant_files(self._folder.parent, self._folder.name), *self._changed}
                held = {path: self._changed.get(path) or load_variant(path) for path in paths}
            extras = list(_extras(held))
            if not extras:
                raise HotpathError(
                    f"{self._folder}: more than {limit} bytes with one run of each variant"
                )
            *_, path, dropped = min(extras)
            one = held[path]
            samples = [sample for sample in one.samples if sample.run != dropped]
            kept = [entry for entry in one.provenance["runs"] if entry["run"] != dropped]
            self._set(path, one.variant, samples, one.provenance, kept)
            held[path] = self._changed[path]

    def _size(self) -> int:
        root = self._folder.parent
        sizes = {
            file.relative_to(root).as_posix(): file.stat().st_size
            for file in self._folder.rglob("*")
            if file.is_file()
        }
        sizes |= {name: len(text.encode()) for name, text in self.texts.items()}
        return sum(sizes.values())


def _superfluous(runs: Mapping[str, Provenance], samples: Sequence[Sample]) -> str:
    """The run to drop of `runs`, which are newest first and of which the first stays.

    Runs of other code than the newest are dropped first, the oldest of them. Otherwise it is one of
    the host with the most runs, so that a variant that is measured again and again on one host
    keeps its runs on others: of those whose cases other runs of that host have, too, the one with
    the fewest cases, else the oldest whose cases runs of any host have, else the oldest. So a wide
    grid outlives the narrow ones after it.
    """
    sources = [(run, entry["source_sha256"]) for run, entry in runs.items()]
    if of_other_code := [run for run, source in sources if source != sources[0][1]]:
        return of_other_code[-1]
    host: dict[str, str] = {run: entry["machine"].get("host", "") for run, entry in runs.items()}
    of_host = Counter(host.values())
    earlier = list(runs)[1:]
    most = max(of_host[host[run]] for run in earlier)
    cases: defaultdict[str, set[str]] = defaultdict(set)
    for sample in samples:
        cases[sample.run].add(sample.case)

    def is_repeated(run: str, on: Collection[str]) -> bool:
        others = (cases[other] for other in runs if other != run and host[other] in on)
        return cases[run] <= set[str]().union(*others)

    candidates = [run for run in reversed(earlier) if of_host[host[run]] == most]
    if repeated := [run for run in candidates if is_repeated(run, {host[run]})]:
        return min(repeated, key=lambda run: len(cases[run]))
    return next((run for run in candidates if is_repeated(run, of_host)), candidates[0])


def _extras(
    held: Mapping[Path, VariantResults],
) -> Iterator[tuple[bool, int, bool, str, int, Path, str]]:
    """Every run but the newest of each variant, so ordered that the least is dropped first. What an
    interval stands on, the newest MIN_RUNS, is kept longer than what comes on top of it; of
    that, every further run adds less.

    The place in the file says which run is older; the clock may have been set back.
    """
    newest = {(one.study, one.provenance["run"]) for one in held.values()}
    for path, one in held.items():
        runs = one.run_provenance()
        ages = accumulate(runs, min)
        for place, (run, age) in enumerate(zip(runs, ages, strict=True)):
            is_current = runs[run]["source_sha256"] == one.provenance["source_sha256"]
            on_top = max(place - MIN_RUNS + 1, 0)
            if place:
                yield is_current, -on_top, (one.study, run) in newest, age, -place, path, run


def set_capture(
    root: Path, machine: str, study: str, variant: str, kind: str, entry: Mapping[str, Any]
) -> None:
    """Record the outcome of a capture of this variant in its provenance.

    HotpathError if the variant has not been measured on this machine, or if a key is wrong.
    """
    path = root / machine / study / f"{variant}.json"
    if not path.exists():
        raise HotpathError(f"{path}: missing; measure the variant before capturing it")
    provenance = read_provenance(path)
    provenance["captures"] = {**provenance.get("captures", {}), kind: dict(entry)}
    write_whole(path, provenance_text(provenance))
