"""Shared fixtures, selection of tests, and their distribution over workers."""

from __future__ import annotations

import gc
import os
from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hypothesis
import pytest
from filelock import ReadWriteLock
from xdist.scheduler import LoadFileScheduling

from analysis import ROOT
from analysis.base import processes
from analysis.base.gpu import GpuError, open_gpus
from analysis.measure.machine_lock import FOLDER_VARIABLE
from tests.heavy import MARK, is_heavy, mark_heavy

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
    for mark in ASKED_FOR:
        parser.addoption(f"--{mark}", action="store_true", help=f"tests marked `{mark}`, too")


def not_asked_for(config: pytest.Config) -> set[str]:
    return {mark for mark in ASKED_FOR if not config.getoption(f"--{mark}")}


def pytest_report_header(config: pytest.Config) -> list[str]:
    return [f"left out without --{one}: {ASKED_FOR[one]}" for one in sorted(not_asked_for(config))]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """With --dist=loadfile a file's tests go to one worker, and so do those of some folders."""
    if config.getvalue("dist") != "loadfile":
        return None
    scheduler = LoadFileScheduling(config, log)
    scheduler._split_scope = room_of
    return scheduler


def room_of(nodeid: str) -> str:
    file = nodeid.partition("::")[0]
    return next(filter(file.startswith, TOGETHER), file)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Skip reading a file without a selected test."""
    without_heavy = config.getoption("markexpr") == f"not {MARK}"
    is_test = collection_path.name.startswith("test_") and collection_path.suffix == ".py"
    return True if without_heavy and is_test and is_heavy(collection_path) else None


@pytest.hookimpl(tryfirst=True)  # before tests are selected by mark
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        mark_heavy(item)
    left_out = not_asked_for(config)
    if any(item.get_closest_marker("gpu") for item in items):
        try:
            with open_gpus([0]):
                pass
        except GpuError:
            left_out.add("gpu")
    out = [item for item in items if any(map(item.get_closest_marker, left_out))]
    if out:
        config.hook.pytest_deselected(items=out)
    kept = set(items) - set(out)
    items[:] = sorted(
        filter(kept.__contains__, items), key=lambda i: not i.nodeid.startswith(FIRST)
    )


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
    name = "v3_loads_first"
    requests = "lts__t_requests_srcunit_tex_aperture_sysmem_lookup_miss.sum"
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
