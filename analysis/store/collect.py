"""The samples of all machines as one table, with stale rows marked."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from operator import attrgetter
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd

from analysis.errors import HotpathError
from analysis.source import fingerprint
from analysis.store.counters import read_counters
from analysis.store.results import Provenance, load_variant, machines, variant_files
from analysis.store.samples import COLUMNS
from analysis.store.timelines import read_events
from analysis.study import Study

CAPTURES = {"ncu": read_counters, "timeline": read_events}
CELL = ["machine", "study", "variant", "case"]
KEY = [*CELL, "metric", "unit"]
UNKNOWN_HOST = "unknown"
"""Of runs made before hosts were told apart."""


@dataclass
class Collected:
    """`samples` has the columns of the files, `machine`, `host`, `stale`, and `disturbed`: whether
    something disturbed the round."""

    samples: pd.DataFrame
    provenance: dict[tuple[str, str, str], Provenance] = field(default_factory=dict)
    machines: dict[str, dict[str, object]] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)


def collect(root: Path, studies: Mapping[str, Study]) -> Collected:
    """Read every machine under `root`.

    If a machine has a malformed file, or one that differs from its provenance, the whole machine is
    left out and the reason is put in `refused`. Results of a study or variant that no longer exists
    are stale.
    """
    frames: list[pd.DataFrame] = []
    collected = Collected(pd.DataFrame())
    for machine in machines(root):
        try:
            machine_frames, provenance = _collect_machine(root, machine, studies)
            description = json.loads((root / machine / "machine.json").read_text())
            if not isinstance(description, dict) or "gpu" not in description:
                raise ValueError(f"{machine}/machine.json: expected a mapping that names the gpu")
        except (HotpathError, ValueError, OSError) as error:
            collected.refused[machine] = str(error).replace(f"{root}/", "")
            continue
        frames += machine_frames
        collected.provenance |= provenance
        collected.machines[machine] = description
    columns = ["machine", "host", *COLUMNS, "stale", "disturbed"]
    samples = pd.concat(frames) if frames else pd.DataFrame(columns=columns)
    collected.samples = without_cold_samples(samples, studies)[columns]
    return collected


def without_cold_samples(samples: pd.DataFrame, studies: Mapping[str, Study]) -> pd.DataFrame:
    """`samples` without the first host times of a visit in runs that took none before to discard.

    They are several per cent slower than the next. A visit with a single one keeps it.
    """
    if samples.empty:
        return samples
    by_host = samples["metric"].isin(["host_time", "submit_time"]) & (samples["status"] == "ok")
    is_cold = (by_host & ~samples["is_warm"].astype(bool)).to_numpy()
    cold = samples[is_cold]
    visit = cold.assign(visit=visits(cold, studies)).groupby(
        [*KEY, "run", "round", "visit"], sort=False
    )["sample"]
    is_first = (cold["sample"] == visit.transform("min")) & (visit.transform("size") > 1)
    is_dropped = np.zeros(len(samples), bool)
    is_dropped[is_cold] = is_first
    return samples[~is_dropped]


def _collect_machine(
    root: Path, machine: str, studies: Mapping[str, Study]
) -> tuple[list[pd.DataFrame], dict[tuple[str, str, str], Provenance]]:
    frames, provenance = [], {}
    for path in variant_files(root, machine):
        loaded = load_variant(path)
        for kind, read in CAPTURES.items():
            if (capture := path.with_suffix(f".{kind}.csv")).exists():
                read(capture)
        study = studies.get(loaded.study)
        known = study is not None and loaded.variant in study.variant_names
        fresh = (
            loaded.fresh_runs(fingerprint(study, study.variant(loaded.variant)))
            if study is not None and known
            else []
        )
        rows = list(map(attrgetter(*COLUMNS), loaded.samples))
        # Without an explicit dtype, a column with only skipped cases would have dtype object.
        frame = pd.DataFrame(rows, columns=list(COLUMNS)).astype({"value": float, "sm_mhz": float})
        runs = loaded.run_provenance()
        frame.insert(0, "machine", machine)
        frame["host"] = frame["run"].map(
            {run: entry["machine"].get("host") or UNKNOWN_HOST for run, entry in runs.items()}
        )
        frame["is_warm"] = frame["run"].map(
            {run: entry.get("discarded_host_passes", 0) > 0 for run, entry in runs.items()}
        )
        frame["stale"] = ~frame["run"].isin(fresh)
        disturbed = {
            (run, one["round"]) for run, entry in runs.items() for one in entry.get("disturbed", [])
        }
        rounds = zip(frame["run"], frame["round"], strict=True)
        frame["disturbed"] = [one in disturbed for one in rounds]
        frames.append(frame)
        provenance[machine, loaded.study, loaded.variant] = loaded.provenance
    return frames, provenance


def visits(samples: pd.DataFrame, studies: Mapping[str, Study]) -> npt.NDArray[np.int64]:
    """The index, from 0, of the visit within its round in which each of `samples` was taken.

    All visits to a cell in one round take the same number of samples, one visit after the other.
    """
    planned = {
        (study.name, case.id): case.visits
        for study in studies.values()
        for variant in study.variants
        for case in variant.cases
    }
    of_round = [
        planned.get(pair, 1) for pair in zip(samples["study"], samples["case"], strict=True)
    ]
    cell = samples.groupby([*KEY, "run", "round"], sort=False)["sample"]
    before = cell.rank(method="first").to_numpy() - 1
    numbers: npt.NDArray[np.int64] = (
        before * np.array(of_round) // cell.transform("size").to_numpy()
    ).astype(np.int64)
    return numbers


def chosen(samples: pd.DataFrame) -> pd.DataFrame:
    """The samples a summary uses: of a variant and case, those of all fresh runs, else of the
    newest run.

    A run that skipped the case counts only where no other did better. Where the output was wrong in
    any round of these, only the rows that say so are left: such a cell has no figure.
    """
    if samples.empty:
        return samples
    cell = [samples[name] for name in CELL]
    is_stale = samples["stale"].astype(bool)
    all_stale = is_stale.groupby(cell, sort=False).transform("all")
    newest = samples["run"].groupby(cell, sort=False).transform("max")
    kept = samples[~is_stale | (all_stale & (samples["run"] == newest))]
    for status, is_worse in (("skipped", True), ("failed", False)):
        has = kept["status"] == status
        every, some = (
            has.groupby([kept[name] for name in CELL], sort=False).transform(how)
            for how in ("all", "any")
        )
        kept = kept[~has | every] if is_worse else kept[has | ~some]
    return kept.reset_index(drop=True)
