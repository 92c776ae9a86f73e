"""The comparison by itself: its package declares or contains all its imports."""

import json
import subprocess
import sys
import tomllib

from analysis import ROOT

PACKAGE = ROOT / "env" / "compare" / "pyproject.toml"
NAMES = {"pyyaml": "yaml"}
OF_OTHERS = {
    "annotated_types",
    "charset_normalizer",
    "pydantic_core",
    "typing_extensions",
    "typing_inspection",
}
_PRINT_IMPORTED = """
import json, sys
import analysis.compare.__main__
files = {name: getattr(module, "__file__", None) for name, module in sys.modules.items()}
print(json.dumps({name: file for name, file in files.items() if file}))
"""


def imported() -> dict[str, str]:
    """The files of all modules that the command imports, by their names."""
    command = [sys.executable, "-c", _PRINT_IMPORTED]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    found: dict[str, str] = json.loads(done.stdout)
    return found


def test_every_imported_package_is_declared() -> None:
    declared = tomllib.loads(PACKAGE.read_text())["project"]["dependencies"]
    names = {text.partition(">")[0] for text in declared}
    packages = {name.partition(".")[0] for name, f in imported().items() if "site-packages" in f}
    packages = {name for name in packages if not name.startswith(("_", "__editable__"))}
    assert packages - OF_OTHERS <= {NAMES.get(name, name) for name in names}


def test_every_imported_module_is_in_the_package() -> None:
    wheel = tomllib.loads(PACKAGE.read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    parts = [(PACKAGE.parent / source).resolve() for source in wheel["force-include"]]
    for name, file in imported().items():
        if name.partition(".")[0] == "analysis":
            assert any(part == (path := ROOT / file) or part in path.parents for part in parts), (
                name
            )
