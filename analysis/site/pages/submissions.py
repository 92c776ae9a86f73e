"""Machines that others sent, on the page about hardware."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from markupsafe import Markup

from analysis.base.quantities import digits, listing, quantity, quantity_interval, with_interval
from analysis.base.statistics import MIN_RUNS
from analysis.results.model.terms import ABOUT
from analysis.site.facts.inputs import Inputs
from analysis.site.pages.html import code, link, moment, plain, table
from analysis.site.pages.page import Page, macro
from analysis.study import calibrating

NOBODY: Final = "Nobody has sent a machine yet."


@macro()
def submitted_machines(page: Page) -> str:
    """Descriptions of the machines that others sent, and the files that were refused."""
    inputs = page.staged.inputs
    accepted = inputs.submissions.accepted
    rows = [
        [
            link(page.address(f"data/submitted/{name}.json"), f"{name} (sent)"),
            *_described(one.content["machine"]),
            moment(one.content["measured"]),
            _runs(one.content["runs"]),
            code(str(one.content["code"]["commit"])[:10]),
            _today(one.content["studies"], len(one.current)),
        ]
        for name, one in accepted.items()
    ]
    columns = ["machine", "GPU", "link", "driver", "CPU", "measured", "runs", "commit"]
    columns += ["variants of today's code"]
    parts: list[str] = [table(columns, rows) if rows else NOBODY]
    refused = inputs.submissions.refused.items()
    parts += [f"- **{plain(name)}** is refused: {plain(reason)}" for name, reason in refused]
    return "\n\n".join(parts)


def _described(machine: Mapping[str, Any]) -> list[str]:
    """GPU, link, driver and CPU; empty if unknown."""
    count = f"{machine['gpus']} × " if machine.get("gpus") else ""
    generation, width = machine.get("pcie_generation"), machine.get("pcie_width")
    driver, cuda = machine.get("driver"), machine.get("cuda")
    return [
        f"{count}{machine['gpu'] or 'none'}",
        f"PCIe {generation}.0 x{width}" if generation and width else "",
        ", ".join(filter(None, [driver, f"CUDA {cuda}" if cuda else ""])),
        machine.get("cpu_id") or machine.get("cpu") or "",
    ]


def _runs(runs: list[Mapping[str, Any]]) -> str:
    hosts = len({one["host"] for one in runs})
    return f"{len(runs)}, {hosts} host{'s' * (hosts != 1)}"


def _today(studies: Mapping[str, Mapping[str, Any]], current: int) -> str:
    return f"{current} of {sum(map(len, studies.values()))}"


@macro()
def machine_parameters(inputs: Inputs) -> str | Markup:
    """Link and translation of every machine, measured here or sent."""
    found: dict[str, dict[str, str]] = {}
    for row in inputs.parameters:
        figure = _figure(row.parameter, row.value, row.ci_low, row.ci_high, row.runs)
        found.setdefault(inputs.called(row.machine), {})[row.parameter] = figure
    for name, one in inputs.submissions.accepted.items():
        sent = one.content["parameters"]
        if sent:
            found[f"{name} (sent)"] = {
                parameter: _figure(parameter, given["value"], *_ends(given), given["runs"])
                for parameter, given in sent.items()
            }
    rows = [
        [about.meaning, *(of_machine.get(name, "") for of_machine in found.values())]
        for name, about in ABOUT.items()
    ]
    rows = [row for row in rows if any(row[1:])]
    return table(["parameter", *found], rows, numeric=[*found]) if rows else ""


def _ends(given: Mapping[str, Any]) -> tuple[float, float]:
    low, high = given["low"], given["high"]
    return (float("nan"), float("nan")) if low is None else (low, high)


def _figure(parameter: str, value: float, low: float, high: float, runs: int) -> str:
    """The value with its interval; of fewer than MIN_RUNS runs, with their number, because an
    interval within these runs says nothing about other hosts."""
    unit = ABOUT[parameter].unit
    unit = unit if unit == "1" else unit.removeprefix("1")
    few = "one run" if runs == 1 else f"{runs} runs"
    figure = quantity(value, unit)
    interval = quantity_interval(value, low, high, unit) if runs >= MIN_RUNS else few
    return with_interval(figure, interval) if figure else ""


@macro()
def submitted_reach(inputs: Inputs) -> str | Markup:
    """Address translation of the machines of which somebody sent the output of tools/reach.cu."""
    sent = {
        name: one.content["reach"]
        for name, one in inputs.submissions.accepted.items()
        if one.content.get("reach")
    }
    rows = [[f"{name} (sent)", reach["gpu"], *_reached(reach)] for name, reach in sent.items()]
    columns = ["machine", "GPU", "translations held", "reach", "page walks"]
    columns += ["gather from the smallest pool", "from the largest", "predicted"]
    if not rows:
        return "Nobody has sent the output of `tools/reach.cu` yet."
    return table(columns, rows, numeric=columns[2:])


def _reached(reach: Mapping[str, Any]) -> list[str]:
    smallest, largest = min(reach["pools"]), max(reach["pools"])
    pool, gathered, predicted, _ = largest
    return [
        _or_empty(reach["held"], "1"),
        _gib(reach["reach_bytes"]),
        _or_empty(reach["walks_per_s"], "/s"),
        quantity(smallest[1], "B/s"),
        f"{quantity(gathered, 'B/s')} ({_gib(pool)})",
        quantity(predicted, "B/s"),
    ]


def _or_empty(value: float | None, unit: str) -> str:
    return "" if value is None else quantity(value, unit)


def _gib(size: float | None) -> str:
    return "" if size is None else f"{digits(size / 2**30)} GiB"


@macro()
def physical_machines(inputs: Inputs) -> str:
    """The physical machines, measured or sent; without one, the command that supplies it."""
    described = {inputs.called(name): one for name, one in inputs.machines.items()}
    for name, sent in inputs.submissions.accepted.items():
        described[f"{name} (sent)"] = sent.content["machine"]
    physical = [name for name, one in described.items() if one.get("hypervisor") is False]
    if physical:
        without = [name for name in physical if described[name].get("iommu") is False]
        found = f"Physical machines: {listing(physical)}."
        return f"{found} Without an IOMMU: {listing(without)}." if without else found
    studies = json.dumps(calibrating(inputs.studies))
    command = 'env/run snakemake --cores "$(nproc)" submission --config machine=my-box'
    return (
        "**A control is missing:** a physical machine, with its IOMMU on and off. All machines here"
        " are virtual, and their hosts' IOMMU cannot be set from within. So the host's share of a"
        " page walk is unknown. If you have a physical machine, this command measures link and"
        f" translation, and writes a file [to send](submitting.md):\n\n```sh\n{command}"
        f" 'studies={studies}'\n```\n\nFor the other half of the control, boot with the kernel"
        " parameter `intel_iommu=off` or `amd_iommu=off`, and run it again as another `machine`."
    )
