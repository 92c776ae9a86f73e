"""Make tables of a study's code from its modules, or keep them in the repository.

A study that derives tables lists them in its `tables.py` as `TABLES`, by name. Each is a function
of the study and the folder of its built modules, and raises HotpathError where something that it
needs is not here, as a compiler or a module. With `--code`, tables are kept, so that a site needs
no compiler: these, `resources.csv` and `machine_code.csv`, what the kernels ask for, and
`made_of.json`, the code that all of them are of.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from analysis.base.cli import fail_in_one_line, program
from analysis.base.errors import HotpathError
from analysis.base.files import write_whole
from analysis.study import Study, find_study
from analysis.study.source import compiled_fingerprint, normalise_python
from analysis.toolchain.compilers import find_toolchain
from analysis.toolchain.modules import load_python

if TYPE_CHECKING:
    import pandas as pd

SOURCE: Final = "tables"
ABSENT: Final = "absent.json"
"""The tables that could not be made, and why."""
MADE_OF: Final = "made_of.json"
CODE_TABLES: Final = ("resources.csv", "machine_code.csv")


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


def made_of(study: Study) -> dict[str, Any]:
    """The code that a study's tables depend on: hashes of its compiled variants, and of its
    tables.py where it has one."""
    tables = study.folder / f"{SOURCE}.py"
    text = normalise_python(tables.read_text()) if tables.exists() else ""
    compiled = (variant for variant in study.variants if variant.is_compiled)
    return {
        "variants": {variant.name: compiled_fingerprint(study, variant) for variant in compiled},
        SOURCE: hashlib.sha256(text.encode()).hexdigest(),
    }


def is_kept(study: Study, folder: Path) -> bool:
    """Whether the tables in `folder` are of today's code."""
    try:
        kept = json.loads((folder / MADE_OF).read_text())
    except (OSError, ValueError):
        return False
    return isinstance(kept, dict) and made_of(study).items() <= kept.items()


def keep(study: Study, code: Path, derived: Path, out: Path) -> None:
    """Replace what `out` has by the tables in `code` and `derived`."""
    toolchain = find_toolchain()
    compilers = {"nvcc": toolchain.version, "cxx": toolchain.cxx_version}
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    tables = [code / name for name in CODE_TABLES]
    for path in [*tables, *derived.glob("*.csv"), *derived.glob(ABSENT)]:
        shutil.copy(path, out / path.name)
    text = json.dumps({**made_of(study), "compilers": compilers}, indent=1, sort_keys=True)
    write_whole(out / MADE_OF, text + "\n")


def main() -> None:
    parser = program("analysis.toolchain.derived", __doc__)
    add = parser.add_argument
    add("study")
    add("--modules", type=Path, help="built for one architecture, to derive tables from")
    add("--code", type=Path, help="folder of CODE_TABLES, to keep with those in --derived")
    add("--derived", type=Path)
    add("-o", "--out", type=Path, required=True, help="where the tables go")
    given = parser.parse_args()
    study = find_study(given.study)
    if given.code:
        keep(study, given.code, given.derived, given.out)
        return
    for name, why in derive_tables(study, given.modules, given.out).items():
        print(f"warning: table {name} is absent: {why}", file=sys.stderr)


if __name__ == "__main__":
    fail_in_one_line(main)
