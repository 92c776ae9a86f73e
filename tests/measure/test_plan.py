"""Plans: pending variants, their baselines, and errors before any launch."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from analysis.base.errors import HotpathError
from analysis.base.gpu import Gpu
from analysis.measure.__main__ import other_users
from analysis.measure.plan import (
    Plan,
    Target,
    pending,
    plan_again,
    plan_pending,
    target,
    to_measure,
    with_companions,
)
from analysis.results.store.copying import require_same_kind
from analysis.results.store.runs import read_runs
from analysis.study import load_study
from analysis.study.config import load_config
from tests.editing import replace_in
from tests.measure.studies import (
    GRID,
    HERE,
    run,
    samples_at,
    write_study,
)
from tests.synthetic import CALLS, add_run, host_of, provenance_of, samples_of


def test_journal_of_other_code_or_another_grid_is_not_resumed(
    tmp_path: Path, where: Target
) -> None:
    study = write_study(tmp_path / "digests", {"name": "one"}, {"name": "two"})
    plan = Plan(study, study.variants, GRID, where)
    others = [
        Plan(study, study.variants[:1], GRID, where),
        Plan(study, study.variants, replace(GRID, rounds=4), where),
        Plan(study, study.variants, GRID, replace(where, machine="other-box")),
    ]
    journals = {plan.journal, *(other.journal for other in others)}
    replace_in(study.folder / "two.py", '"""Fill at once."""', "# Fill at once.")
    assert plan.journal in journals
    replace_in(study.folder / "two.py", "len(out)", "1 * len(out)")
    assert plan.journal not in journals
    assert len(journals) == 4


def test_pending_is_decided_by_code_and_cases(tmp_path: Path, where: Target) -> None:
    variants: list[dict[str, Any]] = [{"name": "one"}, {"name": "two", "after": "one"}]
    study = write_study(tmp_path / "fresh", *variants)
    once = replace(GRID, rounds=1, samples=1)

    def names() -> list[str]:
        study = load_study(tmp_path / "fresh" / "study.yaml")
        return [variant.name for variant in pending(study, where, "default", HERE)]

    assert names() == ["one", "two"]
    run(Plan(study, study.variants, once, where), tmp_path)
    assert names() == []
    replace_in(study.folder / "two.py", '"""Fill at once."""', '"""Fill all."""\n# at once')
    assert names() == []
    replace_in(study.folder / "two.py", "def fill(out)", "def fill(out, *_)")
    assert names() == ["two"]
    replace_in(study.folder / "two.py", "def fill(out, *_)", "def fill(out)")
    assert names() == []
    replace_in(study.folder / "workload.py", "0xA5", "0xA6")
    assert names() == ["one", "two"]
    replace_in(study.folder / "workload.py", "0xA6", "0xA5")
    replace_in(study.folder / "study.yaml", "- 2\n", "- 2\n    - 3\n")
    assert names() == ["one", "two"]
    replace_in(study.folder / "study.yaml", "    - 3\n", "")
    assert names() == []
    assert pending(study, replace(where, machine="other-box"), "default", HERE) == [*study.variants]


def test_a_skipped_variant_is_pending_once_its_need_is_met(tmp_path: Path, where: Target) -> None:
    study = write_study(tmp_path / "needy", {"name": "one", "needs": ["managed"]})
    run(Plan(study, study.variants, replace(GRID, rounds=1), where), tmp_path)
    assert pending(study, where, "default", HERE) == []
    assert pending(study, where, "default", HERE, runs=2) == []
    assert pending(study, where, "default", replace(HERE, managed=True)) == [*study.variants]


def test_a_damaged_run_is_pending_again(tmp_path: Path, where: Target) -> None:
    study = write_study(tmp_path / "damaged", {"name": "one"})
    run(Plan(study, study.variants, replace(GRID, rounds=1), where), tmp_path)
    (path,) = (where.folder / "damaged").glob("*.csv")
    path.write_text("")
    assert pending(study, where, "default", HERE) == [*study.variants]
    refused: list[Path] = []
    assert not [*read_runs(path.parent, study, lambda path, error: refused.append(path))]
    assert [path.suffix for path in refused] == [".json"]


def test_runs_are_pending_until_there_are_enough(tmp_path: Path, where: Target) -> None:
    study = write_study(tmp_path / "several", {"name": "one"})
    grid = replace(GRID, rounds=1)
    run(Plan(study, study.variants, grid, where), tmp_path)
    assert pending(study, where, "default", HERE) == []
    assert pending(study, where, "default", HERE, runs=2) == [*study.variants]
    run(Plan(study, study.variants, grid, replace(where, host="12345678")), tmp_path)
    assert pending(study, where, "default", HERE, runs=2) == []
    assert plan_pending(study, grid, where, HERE, runs=2) is None
    plan = plan_pending(study, grid, where, HERE, runs=3)
    assert plan is not None and plan.asked == ()


def test_pending_variants_are_measured_with_their_baselines(tmp_path: Path) -> None:
    study = write_study(
        tmp_path / "beside",
        {"name": "one"},
        {"name": "two", "after": "one"},
        {"name": "three", "after": "two"},
        {"name": "limit", "role": "ceiling"},
    )
    found = with_companions(study, [study.variant("three")])
    assert [variant.name for variant in found] == ["two", "three", "limit"]
    assert with_companions(study, []) == []
    needy = replace(study.variant("two"), needs=("managed",))
    assert to_measure(study, [needy], HERE) == [study.variant("two")], "it is skipped alone"
    again = plan_again(study, GRID, Target(tmp_path, "box"), "three")
    assert [variant.name for variant in again.variants] == ["two", "three", "limit"]
    assert again.asked == ("three",)


class BusyGpu(Gpu):
    """A GPU on which two processes of others run."""

    def other_processes(self) -> list[int]:
        return [41, 42]


class IdleGpu(Gpu):
    """A GPU on which nothing runs."""

    def other_processes(self) -> list[int]:
        return []


def test_gpu_in_use_is_refused_or_recorded() -> None:
    gpu = BusyGpu(None, "busy", "GPU-0", 3, "sm_90", "0000:00:00.0")
    with pytest.raises(HotpathError, match=r"GPU 3 is used by processes \[41, 42\]"):
        other_users([gpu], "refuse")
    assert other_users([gpu], "record") == [41, 42]
    with pytest.raises(HotpathError, match="GPU 3 is used"):
        other_users([IdleGpu(None, "idle", "GPU-1", 4, "sm_90", ""), gpu], "refuse")
    assert other_users([], "refuse") == []


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"gpu": None}, "gpus: expected 1 as in"),
        ({"gpus": 2}, "gpus: expected 1 as in"),
        ({"gpu": "Small GPU"}, "gpu: expected 'Big GPU' as in"),
        ({"sms": 114}, "sms: expected 132 as in"),
        ({"pcie_width": 8}, "pcie_width: expected 16 as in"),
        ({"pcie_generation": 4}, "pcie_generation: expected 5 as in"),
    ],
)
def test_results_of_another_kind_of_machine_are_refused(
    tmp_path: Path, other: dict[str, Any], message: str
) -> None:
    big = {"gpu": "Big GPU", "sms": 132, "pcie_generation": 5, "pcie_width": 16}
    require_same_kind(host_of(big), tmp_path / "box", "config: machine")
    variant = CALLS.variant("python")
    provenance = provenance_of(CALLS, variant) | {"machine": big}
    add_run(tmp_path, "box", "calls", "python", samples_of(CALLS, variant), provenance)
    require_same_kind(host_of(big), tmp_path / "box", "config: machine")
    with pytest.raises(HotpathError, match=f"config: machine: {message}"):
        require_same_kind(host_of({**big, **other}), tmp_path / "box", "config: machine")
    idle = host_of({**big, "pcie_generation": 1})
    require_same_kind(idle, tmp_path / "box", "config: machine")


def test_larger_grid_includes_the_smaller_one(tmp_path: Path, where: Target) -> None:
    study = write_study(tmp_path / "larger", {"name": "one"})
    run(Plan(study, study.variants, GRID, where), tmp_path)
    assert pending(study, where, "default", HERE) == []
    assert pending(study, where, "full", HERE) == list(study.variants)


@pytest.mark.parametrize(("count", "machine"), [(1, "big-gpu"), (2, "big-gpu-x2")])
def test_several_gpus_are_a_machine_of_its_own(count: int, machine: str) -> None:
    gpus = [Gpu(None, "Big GPU", "", 0, "sm_90", "")] * count
    assert target(load_config(), gpus).machine == machine
    named = {"machine": "my-box", "gpu": list(range(count))}
    assert target(load_config(named), gpus).machine == "my-box"


def test_smoke_grid_uses_a_separate_folder() -> None:
    smoke = target(load_config({"grid": "smoke"}), [])
    assert "smoke" in smoke.root.parts
    assert "smoke" not in target(load_config(), []).root.parts


def test_a_variant_without_a_case_in_the_grid_is_left_alone(tmp_path: Path, where: Target) -> None:
    study = write_study(tmp_path / "grids", {"name": "one"}, {"name": "two"})
    one, two = study.variants
    only_full = replace(two, cases=tuple(replace(case, grid="full") for case in two.cases))
    study = replace(study, variants=(one, only_full))
    assert pending(study, where, "default", HERE) == [one]
    run(Plan(study, study.variants, GRID, where), study.folder)
    assert samples_at(where, study, "one")
    assert samples_at(where, study, "two") == []
