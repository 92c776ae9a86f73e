"""Figures of machines that others sent: results/submitted/<name>.json.

A file is refused if its keys, its digests or its figures cannot be right. Figures of other code
than today's cannot be checked: they are accepted, and no page compares them.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from analysis.base import keys
from analysis.base.errors import FieldError, HotpathError, require_known, visible
from analysis.base.reading import require_folder
from analysis.base.schema import read_json
from analysis.results.model.hardware import read_links
from analysis.results.model.terms import ABOUT
from analysis.results.model.traffic import traffic_of
from analysis.results.store import METHOD_VERSION
from analysis.results.store.collect import FAULTS
from analysis.results.store.folders import SUBMITTED, listed
from analysis.results.store.submission import SUBMISSION_LIMIT_BYTES, SubmissionKeys
from analysis.study import Study, Variant
from analysis.study.access import access_of
from analysis.study.source import fingerprint

LONGEST_S: Final = 86_400.0
SHORTEST_S: Final = 1e-10
"""Bounds of every time of a whole operation."""
FASTEST_MEMORY: Final = 50e12
"""B/s that no operation of one GPU delivers: several times the rate of the fastest memory."""
WHOLE_TIMES: Final = ("gpu_time", "host_time", "op_time")
LANE_RATES: Final = {1: 0.25e9, 2: 0.5e9, 3: 1e9, 4: 2e9, 5: 4e9, 6: 8e9, 7: 16e9}
"""Bytes per second of a PCIe lane in one direction, by generation, before encoding."""
_GENERATIONS: Final = {7: 3, 8: 4, 9: 5}
"""Fastest PCIe generation of a GPU, by the first digits of its architecture; later ones have 6."""
_IDLE_GENERATION: Final = 3
"""An idle link may report up to this generation, and train to a faster one under load."""
_COHERENT: Final = re.compile(r"\bG[HB][0-9]")
"""Names of GPUs behind NVLink-C2C."""


@dataclass(frozen=True)
class Submission:
    """An accepted file. `current` names the studies and variants of today's code."""

    name: str
    content: Mapping[str, Any]
    current: frozenset[tuple[str, str]] = frozenset()

    def of_today(self, study: str, variant: str, case: str) -> Mapping[str, Mapping[str, Any]]:
        """The figures of a variant in a case by metric; none if they are of other code."""
        if (study, variant) not in self.current:
            return {}
        sent = self.content["studies"][study][variant]
        found: Mapping[str, Mapping[str, Any]] = sent["figures"] if sent["case"] == case else {}
        return found


@dataclass(frozen=True)
class Submissions:
    """Accepted files by name, and the reasons for the others by `submitted/<file>`."""

    accepted: Mapping[str, Submission] = field(default_factory=dict)
    refused: Mapping[str, str] = field(default_factory=dict)


def load_submissions(root: Path, studies: Mapping[str, Study]) -> Submissions:
    """Every file of `root`/submitted, a folder of which nothing is trusted."""
    accepted: dict[str, Submission] = {}
    refused: dict[str, str] = {}
    folder, digests = root / SUBMITTED, dict[str, str]()

    def refuse(path: Path, error: Exception) -> None:
        name = path.relative_to(root).as_posix()
        is_foreseen = isinstance(error, HotpathError | OSError)
        reason = str(error) if is_foreseen else f"{name}: {type(error).__name__}: {error}"
        refused[visible(name)] = visible(reason.replace(f"{root}/", ""))

    try:
        if folder.is_symlink() or folder.exists():
            require_folder(folder)
    except (HotpathError, OSError) as error:
        refuse(folder, error)
    for path in listed(folder):
        try:
            sent = read_submission(path, studies)
            twin = digests.setdefault(sent.content["sha256"], sent.name)
            if twin != sent.name:
                raise FieldError(f"{path}: sha256", f"another content than that of {twin}", twin)
            accepted[sent.name] = sent
        except FAULTS as error:
            refuse(path, error)
    return Submissions(accepted, refused)


def read_submission(path: Path, studies: Mapping[str, Study]) -> Submission:
    """A submission; HotpathError names the file, the key, the expected and the actual value."""
    name, _, kind = path.name.partition(".")
    if kind != "json":
        raise HotpathError(f"{path}: expected <name>.json, got {path.name!r}")
    content: dict[str, Any] = read_json(path, SUBMISSION_LIMIT_BYTES)
    sent = checked(content, studies, str(path))
    if sent.name != name:
        raise FieldError(f"{path}: name", f"{name!r}, that of the file", sent.name)
    return sent


def checked(content: Any, studies: Mapping[str, Study], where: str) -> Submission:
    """The submission with this content; FieldError of a file `where` if it cannot be right."""
    keys.read(SubmissionKeys, content, where)
    check = _Check(content, studies, where)
    check.digests()
    check.figures()
    check.parameters()
    check.reach()
    return Submission(content["name"], content, frozenset(check.current))


def content_digest(content: Mapping[str, Any]) -> str:
    """SHA-256 of everything but the digest."""
    rest = {key: value for key, value in content.items() if key != "sha256"}
    return _digest(json.dumps(rest, sort_keys=True, separators=(",", ":")))


def code_digest(studies: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> str:
    """SHA-256 of the hashes of the code of all variants of a submission."""
    hashes = {
        f"{study}/{variant}": sent["source_sha256"]
        for study, variants in studies.items()
        for variant, sent in variants.items()
    }
    return _digest(json.dumps(hashes, sort_keys=True, separators=(",", ":")))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def link_bound(machine: Mapping[str, Any]) -> float:
    """B/s that the link between host and GPU cannot exceed in one direction."""
    fastest = max(link.value("raw_rate") for link in read_links())
    arch = re.match(r"sm_([0-9]+)[0-9]", machine.get("arch") or "")
    if arch is None or _COHERENT.search(machine.get("gpu") or ""):
        return fastest
    generation = machine.get("pcie_generation") or 0
    if generation <= _IDLE_GENERATION:
        generation = _GENERATIONS.get(int(arch[1]), 6)
    rate = LANE_RATES.get(generation, fastest)
    return min(fastest, rate * min(machine.get("pcie_width") or 16, 16))


class _Check:
    """Checks of one submission whose keys have their types."""

    def __init__(self, content: Mapping[str, Any], studies: Mapping[str, Study], where: str):
        self._content, self._studies, self._where = content, studies, where
        self._runs = {one["run"]: one["host"] for one in content["runs"]}
        self._bound = link_bound(content["machine"])
        self.current: set[tuple[str, str]] = set()

    def _require(self, is_right: bool, key: str, expected: str, got: object) -> None:
        if not is_right:
            raise FieldError(f"{self._where}: {key}", expected, got)

    def digests(self) -> None:
        content, right = self._content, content_digest(self._content)
        self._require(
            content["sha256"] == right, "sha256", f"{right}, as by the content", "another"
        )
        right = code_digest(content["studies"])
        got = content["code"]["sha256"]
        self._require(got == right, "code.sha256", f"{right}, as by the variants", got)
        self._require(
            len(self._runs) == len(content["runs"]), "runs", "every run once", "a run twice"
        )

    def figures(self) -> None:
        for study, variants in self._content["studies"].items():
            for name, sent in variants.items():
                self._figures(study, name, sent)

    def _figures(self, study: str, name: str, sent: Mapping[str, Any]) -> None:
        key = f"studies.{study}.{name}"
        hosts = len(set(self._runs.values()))
        for metric, figure in sent["figures"].items():
            at = f"{key}.figures.{metric}"
            runs = len(figure["by_run"])
            self._require(runs <= len(self._runs), at, f"at most {len(self._runs)} runs", runs)
            self._require(figure["hosts"] <= hosts, at, f"at most {hosts} hosts", figure["hosts"])
            if metric in WHOLE_TIMES:
                self._time(at, sent, figure)
        variant = self._described(study, name, sent)
        if variant is not None:
            self.current.add((study, name))
            self._against_description(key, self._studies[study], variant, sent)

    def _time(self, at: str, sent: Mapping[str, Any], figure: Mapping[str, Any]) -> None:
        self._require(figure["unit"] == "s", at, "unit 's'", figure["unit"])
        for seconds in (figure["median"], *figure["by_run"]):
            expected = f"a time from {SHORTEST_S:g} to {LONGEST_S:g} s"
            self._require(SHORTEST_S <= seconds <= LONGEST_S, at, expected, seconds)
        gpus = self._content["machine"].get("gpus") or 1
        rate = sent["payload_bytes"] / min(figure["by_run"])
        expected = f"at most {FASTEST_MEMORY * gpus:g} B/s, above every GPU's memory"
        self._require(rate <= FASTEST_MEMORY * gpus, at, expected, rate)

    def _described(self, study: str, name: str, sent: Mapping[str, Any]) -> Variant | None:
        """The variant, if the figures are of its code today."""
        known = self._studies.get(study)
        if known is None or name not in known.variant_names:
            return None
        is_today = (
            self._content["method_version"] == METHOD_VERSION
            and fingerprint(known, known.variant(name)) == sent["source_sha256"]
        )
        return known.variant(name) if is_today else None

    def _against_description(
        self, key: str, study: Study, variant: Variant, sent: Mapping[str, Any]
    ) -> None:
        cases = {case.id: case for case in variant.cases}
        require_known(f"{self._where}: {key}.case", sent["case"], cases)
        case, payload = cases[sent["case"]], sent["payload_bytes"]
        expected = f"{case.payload_bytes}"
        self._require(payload == case.payload_bytes, f"{key}.payload_bytes", expected, payload)
        for metric, figure in sent["figures"].items():
            at = f"{key}.figures.{metric}"
            require_known(f"{self._where}: {at}", metric, study.metrics)
            unit = study.metrics[metric].unit
            self._require(figure["unit"] == unit, at, f"unit {unit!r}", figure["unit"])
        access = access_of(variant, case)
        if access is None:
            return
        for metric in set(WHOLE_TIMES) & set(sent["figures"]):
            fastest = min(sent["figures"][metric]["by_run"])
            rate = traffic_of(access).data_bytes / fastest
            self._link_rate(f"{key}.figures.{metric}", rate)

    def _link_rate(self, at: str, rate: float) -> None:
        expected = f"at most {self._bound:g} B/s, the rate of the link"
        self._require(rate <= self._bound, at, expected, rate)

    def parameters(self) -> None:
        for name, sent in self._content["parameters"].items():
            at = f"parameters.{name}"
            require_known(f"{self._where}: {at}", name, ABOUT)
            unit = ABOUT[name].unit
            self._require(sent["unit"] == unit, at, f"unit {unit!r}", sent["unit"])
            if unit == "s":
                self._require(sent["value"] < 1, at, "less than 1 s", sent["value"])
            if name == "link_rate":
                self._link_rate(at, sent["value"])

    def reach(self) -> None:
        reach = self._content.get("reach")
        if not reach:
            has_figures = bool(self._content["studies"])
            self._require(has_figures, "studies", "figures of a study, or `reach`", {})
            return
        gpu = self._content["machine"]["gpu"]
        self._require(
            reach["gpu"] == gpu, "reach.gpu", f"{gpu!r}, that of the machine", reach["gpu"]
        )
        for number, (_, bytes_per_s, _, _) in enumerate(reach["pools"]):
            self._link_rate(f"reach.pools.{number}", bytes_per_s)
