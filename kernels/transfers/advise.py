"""Print the fastest call for moving pieces on a machine, from the committed results.

    python -m kernels.transfers.advise --size 4KiB --count 256
    python -m kernels.transfers.advise --size 16MiB --memory pageable --machine my-box

Times are interpolated between measured sizes and counts, never extrapolated.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import pandas as pd

from analysis.api.quantities import digits, quantity, quantity_interval, ratio, with_interval
from analysis.api.study import (
    FieldError,
    HotpathError,
    Study,
    fail_in_one_line,
    find_study,
    load_config,
    parse_case,
)
from analysis.api.tables import collect, summarise

from .kinds import MEMORIES, memory_of, method_of

STUDY: Final = Path(__file__).parent.name
METRIC: Final = "host_time"
"""The clock that includes the CPU's part."""

DIRECTIONS: Final = ("h2d", "d2h")
ROLES: Final = ("step", "beyond")
NOTHING_NEAR: Final = "no measurements around this size and count"
NEEDS: Final = {
    "2d": "needs pieces of one length, at equal distances in either memory: rows of two matrices",
}
"""Requirements on the layout of pieces, for ways that cannot move arbitrary ones."""
_UNITS: Final = {"": 1, "B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}


@dataclass(frozen=True)
class Advice:
    """Time of a variant in seconds, with its interval, which is NaN if there is none."""

    variant: str
    seconds: float
    low: float
    high: float
    is_measured: bool


def moves(study: Study, summary: pd.DataFrame) -> pd.DataFrame:
    """Rows of a `summary` with the host time of a way of moving pieces.

    Columns machine, variant, memory, size, count, direction, median, ci_low, ci_high. Only fresh,
    verified rows of variants that move pieces (not those about timing), without other case keys.
    """
    names = [v.name for v in study.with_role(*ROLES) if memory_of(v.name) in MEMORIES]
    rows = summary[
        (summary["study"] == study.name)
        & summary["variant"].isin(names)
        & (summary["metric"] == METRIC)
        & (summary["verified"].astype(int) == 1)
        & (summary["stale"].astype(int) == 0)
    ].reset_index(drop=True)
    keys = pd.DataFrame([parse_case(case) for case in rows["case"]], index=rows.index)
    keys = keys.reindex(columns=sorted({"size", "count", "direction", *keys.columns}))
    others = keys.columns.difference(["size", "count", "direction"])
    is_move = keys["direction"].isin(DIRECTIONS) & keys[others].isna().all(axis=1)
    columns = ["machine", "variant", "median", "ci_low", "ci_high"]
    table = rows.loc[is_move, columns].join(keys[["size", "count", "direction"]])
    table["memory"] = table["variant"].map(memory_of)
    return table.astype({"size": float, "count": float})


def advise(rows: pd.DataFrame, size: int, count: int) -> list[Advice]:
    """Times of all variants in `rows`, of one machine and direction; the fastest first."""
    found = [
        _of_variant(str(name), of_name, size, count) for name, of_name in rows.groupby("variant")
    ]
    return sorted((one for one in found if one is not None), key=lambda one: one.seconds)


def _of_variant(name: str, rows: pd.DataFrame, size: int, count: int) -> Advice | None:
    times = ["median", "ci_low", "ci_high"]
    exact = rows[(rows["size"] == size) & (rows["count"] == count)]
    if not exact.empty:
        median, low, high = (float(value) for value in exact.iloc[0][times])
        return Advice(name, median, low, high, is_measured=True)
    logs = np.log(rows[times].to_numpy(dtype=float))
    places = np.log2(rows[["size", "count"]].to_numpy(dtype=float))
    at = np.log2([size, count])
    same_count = rows["count"].to_numpy() == count
    if same_count.sum() > 1:
        order = np.argsort(places[same_count, 0])
        along, values = places[same_count, 0][order], logs[same_count][order]
        if not along[0] <= at[0] <= along[-1]:
            return None
        between = [np.interp(at[0], along, column) for column in values.T]
    else:
        # Imported here because they are slow to import and measured cells do not need them.
        from scipy.interpolate import LinearNDInterpolator
        from scipy.spatial import QhullError

        try:
            between = LinearNDInterpolator(places, logs)(at[None])[0]
        except (QhullError, ValueError):  # too few points, or all on a line
            return None
    median, low, high = (float(value) for value in np.exp(between))
    return None if np.isnan(median) else Advice(name, median, low, high, is_measured=False)


def report(advices: Sequence[Advice], payload: int, titles: dict[str, str]) -> Iterable[str]:
    """One line per variant, the fastest first, then a recommendation. `advices` is not empty."""
    for one in advices:
        interval = quantity_interval(one.seconds, one.low, one.high, "s")
        time = with_interval(f"{quantity(one.seconds, 's'):>10}", interval)
        rate = digits(payload / one.seconds / 1e9)
        how = "measured" if one.is_measured else "interpolated"
        yield f"{one.variant:22} {time}, {rate} GB/s, {how}: {titles[one.variant]}"
        if needs := NEEDS.get(method_of(one.variant)):
            yield f"{'':22} {needs}"
    best, *others = advices
    if not others:
        yield f"use {best.variant}: no other measurements"
        return
    second = others[0]
    surely = "surely" if best.high < second.low else "not surely"
    faster = ratio(second.seconds / best.seconds)
    yield f"use {best.variant}: {faster} as fast as {second.variant}, {surely} faster"


def parse_size(text: str) -> int:
    """Parse bytes such as `4096`, `4KiB`, `16 MiB`. ArgumentTypeError otherwise."""
    found = re.fullmatch(r"(\d+) ?([KMG]iB|B|)", text)
    size = int(found[1]) * _UNITS[found[2]] if found else 0
    if size < 1:
        raise argparse.ArgumentTypeError(f"expected bytes such as 4096, 4KiB or 16MiB, got {text}")
    return size


def parse_count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a whole number of at least 1, got {text}")
    return int(text)


def answer(
    summary: pd.DataFrame,
    study: Study,
    *,
    size: int,
    count: int,
    memory: str,
    direction: str,
    machine: str,
) -> list[str]:
    """The answer for every requested machine, as lines; `any` memory, `all` machines.

    A machine without measurements near the cell gets a line about that. HotpathError if no
    machine has any, FieldError for a machine without results.
    """
    rows = moves(study, summary)
    machines = sorted(set(rows["machine"]))
    if not machines:
        raise HotpathError(f"{study.name}: no fresh results on any machine")
    if machine not in ("all", *machines):
        raise FieldError("--machine", f"one of {machines}", machine)
    rows = rows[rows["direction"] == direction]
    if memory != "any":
        rows = rows[rows["memory"] == memory]
    titles = {variant.name: variant.title for variant in study.variants}
    cell = f"{count} x {size} B, {direction}, {memory} memory"
    names = machines if machine == "all" else [machine]
    found = {name: advise(rows[rows["machine"] == name], size, count) for name in names}
    if not any(found.values()):
        raise HotpathError(f"{cell}: {NOTHING_NEAR} on {', '.join(names)}")
    lines = []
    for name, advices in found.items():
        lines.append(f"{name}: {cell}")
        lines += report(advices, size * count, titles) if advices else [NOTHING_NEAR]
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m kernels.transfers.advise",
        description=__doc__.splitlines()[0] if __doc__ else None,
    )
    parser.add_argument("--size", type=parse_size, required=True, help="of a piece: 4096, 4KiB")
    parser.add_argument("--count", type=parse_count, default=1, help="of pieces (1)")
    parser.add_argument("--memory", choices=["any", *MEMORIES], default="any", help="(any)")
    parser.add_argument("--direction", choices=DIRECTIONS, default="h2d", help="(h2d)")
    parser.add_argument("--machine", default="all", help="name of a machine in the results (all)")
    parser.add_argument("--results", type=Path, help="folder of the machines' results")
    arguments = vars(parser.parse_args())
    results = arguments.pop("results") or load_config({}).results
    study = find_study(STUDY)
    samples = collect(results, {STUDY: study}, only={STUDY}).samples
    summary = summarise(samples[samples["study"] == STUDY])
    print(*answer(summary, study, **arguments), sep="\n")


if __name__ == "__main__":
    fail_in_one_line(main)
