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
KEY = ["machine", "study", "variant", "case", "metric", "unit"]


@dataclass
class Collected:
    """`samples` has the columns of the files, plus `machine` and `stale`."""

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
    columns = ["machine", *COLUMNS, "stale"]
    collected.samples = pd.concat(frames) if frames else pd.DataFrame(columns=columns)
    return collected


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
        frame.insert(0, "machine", machine)
        frame["stale"] = ~frame["run"].isin(fresh)
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
    """The samples that a summary uses: for each variant and case the newest fresh run, else the
    newest run.

    A run that skipped the case is used only if no other run measured it.
    """
    if samples.empty:
        return samples
    key = ["machine", "study", "variant", "case"]
    ranked = samples.assign(skipped=samples["status"] == "skipped")
    order = ranked.sort_values(["stale", "skipped", "run"], ascending=[True, True, False])
    newest = order.drop_duplicates(key)[[*key, "run"]]
    return samples.merge(newest, on=[*key, "run"])
