"""Tables of the compiled code, kept in the repository, so that a site needs no compiler.

A study's folder has `resources.csv` and `machine_code.csv`, what its kernels ask for, and
`made_of.json`: the code that they are of.

python -m analysis.toolchain.compiled STUDY NEW KEPT    replace the tables in the folder KEPT
"""

import json
import shutil
import sys
from contextlib import suppress
from pathlib import Path
from typing import Final

from analysis.base.cli import fail_in_one_line
from analysis.base.files import write_whole
from analysis.study import Study, find_study
from analysis.study.source import compiled_fingerprint
from analysis.toolchain.compilers import find_toolchain

MADE_OF: Final = "made_of.json"
CODE_TABLES: Final = ("resources.csv", "machine_code.csv")


def made_of(study: Study) -> dict[str, str]:
    """The code that a study's tables depend on: hashes of its compiled variants by name."""
    compiled = (variant for variant in study.variants if variant.is_compiled)
    return {one.name: compiled_fingerprint(study, one) for one in compiled}


def is_kept(study: Study, folder: Path) -> bool:
    """Whether the tables in `folder` are of today's code."""
    with suppress(OSError, ValueError, LookupError):
        return bool(json.loads((folder / MADE_OF).read_text())["variants"] == made_of(study))
    return False


def keep(study: Study, code: Path, out: Path) -> None:
    """Replace what `out` has by the tables in `code`."""
    toolchain = find_toolchain()
    compilers = {"nvcc": toolchain.version, "cxx": toolchain.cxx_version}
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    for name in CODE_TABLES:
        shutil.copy(code / name, out / name)
    about = {"variants": made_of(study), "compilers": compilers}
    write_whole(out / MADE_OF, json.dumps(about, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    name, new, kept = sys.argv[1:]
    fail_in_one_line(lambda: keep(find_study(name), Path(new), Path(kept)))
