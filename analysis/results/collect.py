"""The samples of all machines as one table, with stale rows marked."""

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from itertools import chain, pairwise
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import pandas as pd

from analysis.base.errors import FieldError, visible
from analysis.results.store import runs as stored
from analysis.results.store.keys import CapturedVariant
from analysis.results.store.published import NOTHING, load_published, published_file
from analysis.results.store.records import CAPTURED
from analysis.results.store.samples import MACHINE_LIMIT_SAMPLES, SAMPLE_TYPES, Row
from analysis.study import Study
from analysis.study.claims.claim import still_named

CELL = ["machine", "study", "variant", "case"]
KEY = [*CELL, "metric", "unit"]
COLUMNS: Final = ("machine", "host", *SAMPLE_TYPES, "stale", "disturbed", "core_copies", "named")


@dataclass
class Collected:
    """Results of some studies under `root`.

    samples: those of SAMPLE_TYPES; `stale`; `disturbed`, if something disturbed the round;
      `core_copies`, the B/s that one core of the host copied before or after it, whichever is less;
      and `named`, the digests of today's claims that the run names, a frozenset
    captures: those without an error
    published: the rows of `load_published` by study
    refused: reasons for what was left out, by its path under the results
    """

    root: Path
    samples: pd.DataFrame
    captures: list[stored.Capture] = field(default_factory=list)
    published: dict[str, pd.DataFrame] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)

    @cached_property
    def machines(self) -> dict[str, dict[str, Any]]:
        """Descriptions of the host of each machine's newest run."""
        hosts = {name: stored.newest_host(self.root / name) for name in stored.machines(self.root)}
        return {name: host.described() for name, host in hosts.items() if host}


def collect(
    root: Path, studies: Mapping[str, Study], only: Collection[str] | None = None
) -> Collected:
    """Read every machine under `root` and the published figures of `studies`, and trust no file.
    `only` names the studies whose results are read, by default all with a folder.

    `refused` has the reasons why a run or folder is left out. Results of a study or variant that no
    longer exists are stale; fresh samples of a case or metric that no longer exists are left out.
    """
    found = Collected(root, pd.DataFrame(columns=COLUMNS))

    def refuse(path: Path, error: Exception) -> None:
        text = stored.reason(path, error).replace(f"{root}/", "")
        found.refused[visible(path.relative_to(root).as_posix())] = visible(text)

    for study in studies.values():
        found.published[study.name] = NOTHING
        try:
            found.published[study.name] = load_published(root, study)
        except stored.FAULTS as error:
            refuse(published_file(root, study), error)
    tables = []
    sizes: dict[str, int] = defaultdict(int)
    codes_of = cache(lambda study: stored.codes_of(studies.get(study)))
    for folder in stored.study_folders(root, refuse):
        if only is not None and folder.name not in only:
            continue
        machine, known, codes = folder.parent.name, studies.get(folder.name), codes_of(folder.name)
        for one in stored.read_study(folder, known, refuse, codes=codes):
            if isinstance(one, stored.Capture):
                found.captures.append(one)
                continue
            path, table = folder / one.about.file_name, _samples(one, known, codes)
            if sizes[machine] + len(table) > MACHINE_LIMIT_SAMPLES:
                expected = f"at most {MACHINE_LIMIT_SAMPLES} samples of a machine"
                refuse(path, FieldError(f"{path}", expected, "more"))
            else:
                sizes[machine] += len(table)
                tables.append(table)
    if tables:
        found.samples = pd.concat(tables)[[*COLUMNS]].reset_index(drop=True)
    return found


def _samples(run: stored.Run, study: Study | None, codes: Mapping[str, str]) -> pd.DataFrame:
    """The samples of a run in COLUMNS; `codes` are those of the study."""
    about, table = run.about, frame(run.rows)
    table["stale"] = ~table["variant"].isin(about.fresh(codes))
    if study:
        cases = {(v.name, case.id) for v in study.variants for case in v.cases}
        is_case = [cell in cases for cell in zip(table["variant"], table["case"], strict=True)]
        is_known = table["metric"].isin(["", *study.units]) & np.array(is_case, dtype=bool)
        table = table[table["stale"] | is_known]
    looks = pairwise(look.copy_bytes_per_s for look in about.conditions)
    copies = dict(enumerate(map(min, looks)))
    named = still_named(about.bounds, study.bounds if study else frozenset())
    return table.assign(
        machine=about.machine,
        host=about.host.id,
        study=about.study,
        run=about.run,
        disturbed=table["round"].isin([disturbance.round for disturbance in about.disturbed]),
        core_copies=table["round"].map(copies).astype(float),
        named=pd.Series([named] * len(table), index=table.index, dtype=object),
    )


def frame(rows: Iterable[Row]) -> pd.DataFrame:
    """A table with a row per sample, and one without a value for a skipped or failed case, in
    SAMPLE_TYPES without `study` and `run`."""
    cells = [
        {**vars(row), "metric": metric, "unit": unit, "value": values}
        for row in rows
        for (metric, unit), values in (row.values or {("", ""): (math.nan,)}).items()
    ]
    names = [name for name in SAMPLE_TYPES if name not in ("study", "run")]
    sizes = [len(cell["value"]) for cell in cells]
    # To have pandas explode the cells would take several times as long.
    table = pd.DataFrame(cells, columns=names).loc[np.repeat(np.arange(len(cells)), sizes)]
    table["value"] = np.concatenate([cell["value"] for cell in cells]) if cells else []
    table["sample"] = [*chain.from_iterable(map(range, sizes))]
    numbers = {name: SAMPLE_TYPES[name] for name in names if SAMPLE_TYPES[name] is not str}
    return table.reset_index(drop=True).astype(numbers)


class Taken(NamedTuple):
    """A variant's part of a capture; `is_fresh` if it is of today's code."""

    capture: stored.Capture
    variant: CapturedVariant
    is_captured: bool
    is_fresh: bool


def taken_of(
    captures: Iterable[stored.Capture], key: tuple[str, str, str], kind: str, code: str | None
) -> Taken | None:
    """The capture of a kind of a machine's study's variant: one of today's `code`, else the newest;
    one that was not captured only where no other was."""
    *place, variant = key
    found = [
        Taken(one, entry, entry.status == CAPTURED, entry.source_sha256 == code)
        for one in captures
        if [one.about.machine, one.about.study, one.about.kind] == [*place, kind]
        if (entry := one.about.variants.get(variant))
    ]
    return max(
        found, key=lambda one: (one.is_captured, one.is_fresh, one.capture.about.at), default=None
    )
