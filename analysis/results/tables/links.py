"""The parameters of every machine's link, fitted to samples of the studies that calibrate it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from analysis.base.cli import existing_folder, fail_in_one_line, program
from analysis.base.errors import HotpathError
from analysis.base.files import write_whole
from analysis.base.forked import forked_map
from analysis.results.model import METRIC
from analysis.results.model.fit import Calibration, Fit, fit
from analysis.results.model.judge import FITTED, held_back
from analysis.results.model.terms import WORK, Parameters, work_of
from analysis.results.store.collect import collect
from analysis.results.tables.newest import newest_apart
from analysis.results.tables.summary import summarise
from analysis.study import Study, calibrating, discover
from analysis.study.access import access_of

Work = Mapping[tuple[str, str, str], tuple[tuple[float, ...], str]]
"""Row of the model's input, and its use in the fit, by study, variant and case."""


@dataclass(frozen=True)
class Links:
    """Fits by machine: to all runs, to all but the newest, and to the newest. The latter two are
    fitted without intervals, so the ends of these are NaN."""

    every: dict[str, Fit] = field(default_factory=dict)
    kept: dict[str, Fit] = field(default_factory=dict)
    held: dict[str, Fit] = field(default_factory=dict)

    def to_text(self) -> str:
        """The fits as JSON, which keeps every figure exactly."""
        return json.dumps(asdict(self), indent=1) + "\n"

    @classmethod
    def from_file(cls, path: Path) -> Links:
        """The links whose text is in a file. HotpathError where that is another one."""
        try:
            return cls.from_text(path.read_text())
        except (ValueError, AttributeError, KeyError, TypeError) as error:
            raise HotpathError(
                f"{path}: expected what `python -m analysis.results.tables.links` writes, "
                f"got {error!r}"
            ) from error

    @classmethod
    def from_text(cls, text: str) -> Links:
        return cls(
            **{
                name: {machine: _fit(entry) for machine, entry in machines.items()}
                for name, machines in json.loads(text).items()
            }
        )


def _fit(entry: Mapping[str, Any]) -> Fit:
    values, low, high = (Parameters(**entry[name]) for name in ("parameters", "low", "high"))
    return Fit(values, low, high, tuple(entry["runs"]))


def collect_links(results: Path, studies: Mapping[str, Study]) -> Links:
    """`fit_links` to what is under `results`."""
    calibrations = {name: studies[name] for name in calibrating(studies)}
    collected = collect(results, calibrations, only=calibrations)
    return fit_links(collected.samples, collected.machines, calibrations)


def fit_links(
    samples: pd.DataFrame,
    machines: Mapping[str, Mapping[str, Any]],
    studies: Mapping[str, Study],
) -> Links:
    """Fit the link model of each machine to its calibration. Inputs: as returned by `collect`.

    A machine without its number of `sms`, or with too few calibration cases, has no fit.
    """
    calibrations = {name: studies[name] for name in calibrating(studies)}
    samples = samples[samples["study"].isin(calibrations)]
    work = {machine: work_on(about, calibrations) for machine, about in machines.items()}
    wanted: list[tuple[str, str, pd.DataFrame]] = []
    for machine in machines:
        here = samples[samples["machine"] == machine]
        apart = newest_apart(here)
        parts = {"every": here, "kept": apart.kept, "held": apart.held}
        wanted += [(machine, name, runs) for name, runs in parts.items()]

    def fitted(one: tuple[str, str, pd.DataFrame]) -> Fit | None:
        machine, name, runs = one
        return fit(_calibrations(runs, work[machine]), with_intervals=name == "every")

    links = Links()
    for (machine, name, _), found in zip(wanted, forked_map(fitted, wanted), strict=True):
        if found is not None:
            getattr(links, name)[machine] = found
    return links


def work_on(description: Mapping[str, Any], studies: Mapping[str, Study]) -> Work:
    """The work of every case with a `link`, in the order of the studies, on a machine that is
    described so; nothing where its number of `sms` is not known."""
    sms = description.get("sms")
    if not isinstance(sms, int) or sms < 1:
        return {}
    return {
        (study.name, variant.name, case.id): (work_of(access, sms), held)
        for study in studies.values()
        for variant in study.variants
        for case, held in zip(variant.cases, held_back(study, variant), strict=True)
        if (access := access_of(variant, case)) is not None
    }


def predictable(summary: pd.DataFrame, known: Work) -> pd.DataFrame:
    """Fresh, verified rows of one machine's `summary` that can be predicted, in the order of
    `known`, with `measured`, `work` and `held_back`."""
    good = summary[
        (summary["metric"] == METRIC) & (summary["stale"] == 0) & (summary["verified"] == 1)
    ]
    measured = {(row["study"], row["variant"], row["case"]): row for row in good.to_dict("records")}
    rows = [
        measured[key] | {"measured": measured[key]["median"], "work": work, "held_back": held}
        for key, (work, held) in known.items()
        if key in measured
    ]
    return pd.DataFrame(rows, columns=[*summary.columns, "measured", "work", "held_back"])


def _calibrations(samples: pd.DataFrame, known: Work) -> list[Calibration]:
    """Inputs of the fit from each run of a machine's calibrations, oldest first.

    The error of a time is half the width of its interval. Cases without one are left out.
    """
    runs = []
    for _, of_run in samples.groupby("run"):
        rows = predictable(summarise(of_run), known)
        rows = rows[(rows["held_back"] == FITTED) & rows[["ci_low", "ci_high"]].notna().all(axis=1)]
        work = np.array(rows["work"].tolist(), dtype=float).reshape(-1, len(WORK))
        seconds, low, high = rows[["measured", "ci_low", "ci_high"]].to_numpy(dtype=float).T
        runs.append(Calibration(work, seconds, (high - low) / 2 / seconds))
    return runs


def main() -> None:
    parser = program("analysis.results.tables.links", __doc__)
    parser.add_argument("--results", type=existing_folder, required=True, help="measured results")
    parser.add_argument("--out", type=Path, required=True, help="where the parameters go")
    arguments = parser.parse_args()
    write_whole(arguments.out, collect_links(arguments.results, discover()).to_text())


if __name__ == "__main__":
    fail_in_one_line(main)
