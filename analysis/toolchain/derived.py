"""Make the tables of a study's code: where a compiler puts its data, what its modules do.

A study that has such tables lists them in its `tables.py` as `TABLES`, by name. Each is a function
of the study and the folder of its built modules, and raises HotpathError where something that it
needs is not here, as a compiler or a module.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from analysis.base.cli import fail_in_one_line, program
from analysis.base.errors import HotpathError
from analysis.study import Study, find_study
from analysis.toolchain.modules import load_python

if TYPE_CHECKING:
    import pandas as pd

SOURCE: Final = "tables"
ABSENT: Final = "absent.json"
"""The tables that could not be made, and why."""


def derive_tables(study: Study, modules: Path, out: Path) -> dict[str, str]:
    """Write each of the study's tables to `out`/<name>.csv; older ones are removed.

    Returns what ABSENT in `out` says: why a table could not be made, by its name.
    """
    out.mkdir(parents=True, exist_ok=True)
    for old in out.glob("*.csv"):
        old.unlink()
    absent = {}
    for name, make in load_python(study, SOURCE).TABLES.items():
        try:
            make(study, modules).to_csv(out / f"{name}.csv", index=False)
        except HotpathError as error:
            absent[name] = str(error)
    (out / ABSENT).write_text(json.dumps(absent, indent=1) + "\n")
    return absent


def read_derived(folder: Path) -> dict[str, pd.DataFrame]:
    """The tables that are in a study's folder, by name."""
    import pandas as pd  # here, as Snakemake reads this file for its names

    return {path.stem: pd.read_csv(path) for path in sorted(folder.glob("*.csv"))}


def read_absent(folder: Path) -> dict[str, str]:
    """Why tables of a study could not be made, by table, as `derive_tables` wrote it."""
    path = folder / ABSENT
    return dict(json.loads(path.read_text())) if path.exists() else {}


def main() -> None:
    parser = program("analysis.toolchain.derived", __doc__)
    parser.add_argument("study")
    parser.add_argument("--modules", type=Path, required=True, help="built for one architecture")
    parser.add_argument("-o", "--out", type=Path, required=True, help="where the tables go")
    given = parser.parse_args()
    for name, why in derive_tables(find_study(given.study), given.modules, given.out).items():
        print(f"warning: table {name} is absent: {why}", file=sys.stderr)


if __name__ == "__main__":
    fail_in_one_line(main)
