"""What the assembler and the disassembler say of kernels, and the tables that are kept of it."""

import csv
import json
import shutil
from pathlib import Path

import pytest

from analysis import ROOT
from analysis.study import Study, load_study
from analysis.toolchain import reports
from analysis.toolchain.compiled import CODE_TABLES, MADE_OF, is_kept, keep
from analysis.toolchain.reports import MACHINE_CODE, REPORT, kernel_name, parse_ptxas
from tests.repository import STUDIES
from tests.synthetic import CALLS

# From a build of a copy kernel: an index, then 16 bytes a lane at once, and a guarded rest.
SNIPPET = Path(__file__).with_name("copy_sm90.sass")
TWO_KERNELS = """\
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function '_Z3twoPKdPd' for 'sm_90'
ptxas info    : Function properties for _Z3twoPKdPd
    816 bytes stack frame, 808 bytes spill stores, 864 bytes spill loads
ptxas info    : Used 32 registers, used 1 barriers, 816 bytes cumulative stack size
ptxas info    : Compiling entry function '_Z3onePi' for 'sm_90'
ptxas info    : Function properties for _Z3onePi
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 10 registers, used 1 barriers, 256 bytes smem
ptxas info    : Function properties for _Z6helperPKdi
    16 bytes stack frame, 8 bytes spill stores, 8 bytes spill loads
"""


def test_ptxas_reports_are_read_kernel_by_kernel() -> None:
    of_two = {"stack_bytes": 816, "spill_store_bytes": 808, "spill_load_bytes": 864}
    of_two |= {"registers": 32, "shared_bytes": 0}
    of_one = dict.fromkeys(of_two, 0) | {"registers": 10, "shared_bytes": 256}
    assert parse_ptxas(TWO_KERNELS) == [
        {"kernel": "_Z3twoPKdPd", "arch": "sm_90", **of_two},
        {"kernel": "_Z3onePi", "arch": "sm_90", **of_one},
    ]
    names = {
        "_Z11gather_rows6Gather": "gather_rows",
        "_Z9copy_rowsILi4ELi2EEv4Rows": "copy_rows<4, 2>",
        "_Z4holdIN12_GLOBAL__N_16Shift8EEvT_": "hold",
        "cudaLaunchKernel": "cudaLaunchKernel",
        "_Z": "_Z",
    }
    assert {symbol: kernel_name(symbol) for symbol in names} == names


def test_machine_code_is_read_by_width(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert reports.parse_sass("Fatbin elf code:\n\tcode for sm_90\n\t.target sm_90\n") == []
    module = tmp_path / "copy" / "one.so"
    module.parent.mkdir()
    shutil.copy(SNIPPET, module)
    module.with_suffix(REPORT).write_text(TWO_KERNELS)
    out = module.with_suffix(".sass.csv")
    monkeypatch.setattr(reports, "cuobjdump", lambda module, option: module.read_text())
    reports.main(module)
    with module.with_suffix(".ptxas.csv").open() as file:
        rows = [(row["study"], row["variant"], row["registers"]) for row in csv.DictReader(file)]
    assert rows == [("copy", "one", "32"), ("copy", "one", "10")]
    # The code waits for the index before it requests either vector.
    counts = {"load_64": "1", "load_128": "2", "store_128": "2"}
    counts |= {"loads_in_flight": "2", "in_flight_bytes": f"{2 * 16 * 32}"}
    names = {"study": "copy", "variant": "one", "arch": "sm_90"}
    expected = {**dict.fromkeys(MACHINE_CODE, "0"), **names, **counts, "reason": ""}
    with out.open() as file:
        assert [*csv.DictReader(file)] == [expected | {"kernel": "_Z11gather_rows6Gather"}]
    monkeypatch.undo()
    monkeypatch.setattr("analysis.toolchain.reports.sysconfig.get_path", lambda _: str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    reports.main(module)
    reason = "cuobjdump is neither in this environment nor in PATH"
    expected = {**dict.fromkeys(MACHINE_CODE, ""), "study": "copy", "variant": "one"}
    with out.open() as file:
        assert [*csv.DictReader(file)] == [expected | {"reason": reason}]


COMPILED = [one for one in STUDIES.values() if any(v.is_compiled for v in one.variants)]


@pytest.mark.parametrize("study", COMPILED, ids=lambda study: study.name)
def test_committed_tables_are_of_the_committed_code(study: Study) -> None:
    """Otherwise the first command on a new machine compiles the study, which takes minutes."""
    folder = ROOT / "compiled" / "sm_90" / study.name
    renew = f"env/run snakemake --cores 8 build --config 'studies=[\"{study.name}\"]'"
    assert is_kept(study, folder), f"renew and commit them: {renew}"


def test_tables_are_kept_until_their_code_changes(tmp_path: Path) -> None:
    study = load_study(shutil.copytree(CALLS.folder, tmp_path / CALLS.name) / "study.yaml")
    code, kept = tmp_path / "code", tmp_path / "kept"
    for folder, name in (*((code, table) for table in CODE_TABLES), (kept, "of_older_code.csv")):
        folder.mkdir(exist_ok=True)
        (folder / name).touch()
    keep(study, code, kept)
    assert {path.name for path in kept.iterdir()} == {*CODE_TABLES, MADE_OF}
    assert set(json.loads((kept / MADE_OF).read_text())["compilers"]) == {"nvcc", "cxx"}
    source = study.variant("compiled").path
    before = source.read_text()
    for text, expected in (("// a comment", True), ("int unused = 1;", False), ("", True)):
        source.write_text(f"{before}\n{text}\n")
        assert is_kept(study, kept) is expected, text
    (kept / MADE_OF).write_text("not JSON")
    assert not is_kept(study, kept)
