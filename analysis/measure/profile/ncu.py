"""Hardware counters from Nsight Compute: which ones to request, and how to parse the output."""

import csv
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress

from analysis.base.errors import HotpathError
from analysis.results.store.records import Counter

STALLS = (
    *("barrier", "branch_resolving", "dispatch_stall", "drain", "imc_miss", "lg_throttle"),
    *("long_scoreboard", "math_pipe_throttle", "membar", "mio_throttle", "no_instruction"),
    *("not_selected", "selected", "short_scoreboard", "sleeping", "tex_throttle", "wait"),
)

METRICS = (
    "gpu__time_duration.sum",
    # the link
    "pcie__read_bytes.sum",
    "pcie__write_bytes.sum",
    "lts__t_requests_srcunit_tex_aperture_sysmem.sum",
    "lts__t_requests_srcunit_tex_aperture_sysmem_lookup_miss.sum",
    "lts__t_sectors_srcunit_tex_aperture_sysmem.sum",
    "lts__t_sectors_srcunit_tex_aperture_sysmem_lookup_miss.sum",
    # reads of page tables: what asks L2 for device memory and is no multiprocessor and no other L2
    "lts__t_requests_aperture_device.sum",
    "lts__t_requests_srcnode_gpc_aperture_device.sum",
    "lts__t_requests_srcunit_ltcfabric_aperture_device.sum",
    # the memories of the GPU
    "dram__bytes_read.sum",
    "dram__bytes_write.sum",
    "lts__t_bytes.sum",
    "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
    # the multiprocessors
    "sm__warps_active.avg.pct_of_peak_sustained_active",
    "smsp__inst_executed.sum",
    *(f"smsp__average_warps_issue_stalled_{name}_per_issue_active.ratio" for name in STALLS),
    "launch__registers_per_thread",
    "launch__grid_size",
    "launch__block_size",
)


def run(*arguments: str) -> str:
    """The output of the tool. HotpathError has its message, such as a missing permission."""
    if shutil.which("ncu") is None:
        raise HotpathError("ncu is not in PATH")
    done = subprocess.run(
        ["ncu", *arguments], capture_output=True, text=True, errors="replace", check=False
    )
    text = done.stdout + done.stderr
    if done.returncode != 0 or "==ERROR==" in text:
        error = re.search(r"==ERROR==\s*(.+)", text)
        said = error[1] if error else " ".join(text.split())[-300:]
        raise HotpathError(f"ncu: {said or f'exit code {done.returncode}'}")
    return done.stdout


def known_metrics() -> list[str]:
    """The METRICS that the tool supports for this GPU, in order. Those of a launch are never
    listed."""
    names = {line.split()[0] for line in run("--query-metrics").splitlines() if line.strip()}
    return [m for m in METRICS if m.partition(".")[0] in names or m.startswith("launch__")]


def capture(command: Sequence[str]) -> str:
    """Profile `command`, which starts the profiler itself; returns the raw CSV."""
    options = ["--profile-from-start", "off", "--clock-control", "none", "--print-units", "base"]
    options += ["--nvtx", "--print-nvtx-rename", "kernel", "--csv", "--page", "raw"]
    options += ["--target-processes", "all", "--metrics", ",".join(known_metrics())]
    return run(*options, *command)


def parse(text: str, cases: Mapping[str, str]) -> Iterator[Counter]:
    """A counter for every metric of every profiled kernel in the tool's raw CSV; `cases` has the
    case of each variant.

    The tool prefixes the kernel's name with that of the NVTX range, which is the variant's. Lines
    before the table are output of the program. HotpathError if there is no table.
    """
    _, start, table = f"\n{text}".partition('\n"ID"')
    if not start and "No kernels were profiled" in text:
        return
    if not start:
        raise HotpathError("ncu printed no table of counters")
    header, units, *rows = csv.reader(f'"ID"{table}'.splitlines())
    for row in rows:
        if len(row) != len(header):
            raise HotpathError(f"ncu: expected {len(header)} fields, got {len(row)}: {row[:3]}")
        name, _, kernel = row[header.index("Kernel Name")].partition("/")
        for metric, unit, value in zip(header, units, row, strict=True):
            with suppress(ValueError):  # n/a: the counter does not exist for this kernel
                if metric in METRICS and name in cases:
                    number = float(value.replace(",", ""))
                    yield Counter(name, cases[name], kernel, metric, unit, number)
