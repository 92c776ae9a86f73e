"""Shared fixtures, selection of tests, and their distribution over workers."""

from __future__ import annotations

import gc
import os
import re
from collections.abc import Generator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hypothesis
import pytest
from filelock import ReadWriteLock
from xdist.scheduler import LoadFileScheduling

from analysis import ROOT
from analysis.base import processes
from analysis.base.gpu import GpuError, open_gpus
from analysis.measure.machine import FOLDER_VARIABLE

if TYPE_CHECKING:
    from analysis.site.facts.inputs import Inputs

# The process that distributes tests also reads this file, so fixtures do the slow imports.

# All CPUs are busy with tests, and a forked process would not leave behind what it has cached.
pytest.MonkeyPatch().setattr(processes, "allowed_cores", lambda: 1)

ASKED_FOR = {
    "long": "sanitizers, further architectures, a cluster",
    "exhaustive": "an hour of random kills and crashes, times where nothing else runs",
}
"""Marks of tests that need the option of that name, with a description."""
BUILD = ROOT / "build" / "tests"
FIRST = (
    *("tests/workflow/", "tests/kernels/rdma_write/", "tests/site/pages/site/"),
    *("tests/conformance/", "tests/study/", "tests/toolchain/", "tests/tools/"),
    *("tests/site/committed/", "tests/site/check/"),
)
"""Tests that start first: the longest, and those that would end late."""
TOGETHER = (
    *("tests/kernels/pinning/", "tests/kernels/pool_gather/", "tests/kernels/rdma_write/"),
    *("tests/kernels/transfers/", "tests/site/pages/site/"),
    *("tests/site/committed/", "tests/site/check/"),
)
"""Folders whose tests are for one worker: they wait for the same bindings to be compiled, count
what their processes leave behind, or look at what takes long to build."""
IMPORTED = re.compile(r"^\s*(?:from|import) ([\w.]+)", re.MULTILINE)
TOOLS = re.compile(
    r"(analysis\.site\.facts\.inputs|playwright|vl_convert"
    r"|tests\.(compiled|roots|browser|workflow\.pipeline))\b"
)
"""Modules whose importers are heavy: they compile, browse, run the pipeline or build tables."""

# No deadline for examples, because other tests run at the same time.
hypothesis.settings.register_profile(
    "beside_others", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("beside_others")


def pytest_configure() -> None:
    locks = BUILD / "locks" / os.environ.get("PYTEST_XDIST_WORKER", "one")
    locks.mkdir(parents=True, exist_ok=True)
    # Measurements of a worker's tests wait for no other process.
    os.environ[FOLDER_VARIABLE] = str(locks)
    # No test survives a power failure, and thousands of files are written.
    os.fsync = lambda fd: None


def pytest_addoption(parser: pytest.Parser) -> None:
    for mark, about in ASKED_FOR.items():
        parser.addoption(f"--{mark}", action="store_true", help=f"tests marked `{mark}`: {about}")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """With --dist=loadfile a file's tests go to one worker, and so do those of some folders."""
    if config.getvalue("dist") != "loadfile":
        return None

    def room_of(nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        return next(filter(file.startswith, TOGETHER), file)

    scheduler = LoadFileScheduling(config, log)
    scheduler._split_scope = room_of
    return scheduler


@cache
def is_heavy(file: Path) -> bool:
    """Whether a file of tests, or one that it imports from tests/, imports one of TOOLS."""
    modules = set(IMPORTED.findall(file.read_text()))
    helpers = {ROOT / f"{one.replace('.', '/')}.py" for one in modules if one[:6] == "tests."}
    read = filter(Path.exists, helpers - {file})
    return any(map(TOOLS.match, modules)) or any(map(is_heavy, read))


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Skip reading a file without a selected test."""
    without_heavy = config.getoption("markexpr") == "not heavy"
    is_test = collection_path.name.startswith("test_") and collection_path.suffix == ".py"
    return True if without_heavy and is_test and is_heavy(collection_path) else None


@pytest.hookimpl(tryfirst=True)  # before tests are selected by mark
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    left_out = {mark for mark in ASKED_FOR if not config.getoption(f"--{mark}")}
    try:
        with open_gpus([0]):
            pass
    except GpuError:
        left_out.add("gpu")
    for item in items:
        fixtures = vars(item)["_fixtureinfo"].name2fixturedefs.values()
        files = {Path(one.func.__code__.co_filename) for each in fixtures for one in each}
        ours = {item.path, *(file for file in files if file.is_relative_to(ROOT / "tests"))}
        if item.get_closest_marker("gpu") or any(map(is_heavy, ours)):
            item.add_marker("heavy")
    out = [item for item in items if any(map(item.get_closest_marker, left_out))]
    config.hook.pytest_deselected(items=out)
    kept = set(items) - set(out)
    items[:] = filter(kept.__contains__, items)
    items.sort(key=lambda item: not item.nodeid.startswith(FIRST))


def pytest_collection_finish() -> None:
    # Imported and collected objects stay to the end, so the garbage collector need not scan them.
    gc.freeze()


def pytest_sessionfinish() -> None:
    gc.unfreeze()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Tests marked `gpu` have the machine to themselves; all others share it."""
    lock = ReadWriteLock(BUILD / "machine.db")
    alone = item.get_closest_marker("gpu") is not None
    with lock.write_lock() if alone else lock.read_lock():
        return (yield)


@pytest.fixture(scope="session")
def two_machines(tmp_path_factory: pytest.TempPathFactory) -> Inputs:
    """Inputs of the report from two machines, which measured all synthetic studies."""
    from analysis.study import discover
    from tests.roots import make_inputs, make_root
    from tests.synthetic import write_machine

    root = make_root(tmp_path_factory.mktemp("two_machines"))
    for study in discover(root).values():
        for name in ("box", "other-box"):
            write_machine(root / "results", name, study)
    return make_inputs(root)


@pytest.fixture(scope="session")
def calibrated_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The machine whose link is known has measured the gather, and counted once."""
    from analysis.results.store.records import Counter
    from tests.linked import GATHER, made_up
    from tests.synthetic import set_capture

    root = made_up(tmp_path_factory.mktemp("calibrated"))
    name, requests = "v3_loads_first", "lts__t_requests_srcunit_tex_aperture_sysmem_lookup_miss.sum"
    counted = [
        Counter(name, GATHER.headline, "gather_rows", *found)
        for found in (
            ("pcie__read_bytes.sum", "byte", 195e6),
            (requests, "", 1.6e6),
            ("sm__cycles_active.avg", "cycle", 5.0),
        )
    ]
    set_capture(root / "results", "box", GATHER, "counters", {name: {}}, counted)
    return root


@pytest.fixture(scope="session")
def calibrated(calibrated_root: Path) -> Inputs:
    from tests.roots import make_inputs

    return make_inputs(calibrated_root)
