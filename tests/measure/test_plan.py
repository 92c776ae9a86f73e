"""Plans: pending variants, their baselines, and errors before any launch."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from analysis.base.errors import HotpathError
from analysis.base.gpu import Gpu
from analysis.measure.__main__ import other_users, refuse_other_machine
from analysis.measure.plan import Plan, Target, pending, target, with_companions
from analysis.results.store.collect import collect
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
    replace_in(study.folder / "two.py", "len(out)", "(len(out))")
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
    assert pending(study, where, "default", replace(HERE, managed=True)) == [*study.variants]


def test_damaged_results_are_not_measured_over(tmp_path: Path, where: Target) -> None:
    study = write_study(tmp_path / "damaged", {"name": "one"})
    run(Plan(study, study.variants, replace(GRID, rounds=1), where), tmp_path)
    (where.root / "test-box" / "damaged" / "one.csv").write_text("")
    assert pending(study, where, "default", HERE) == []
    assert list(collect(where.root, {"damaged": study}).refused) == ["test-box/damaged"]


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


def test_results_of_a_gpu_are_kept_on_a_machine_without_one(where: Target) -> None:
    folder = where.root / where.machine
    folder.mkdir(parents=True)
    refuse_other_machine(where, [])
    refuse_other_machine(where, [])
    refuse_other_machine(where, [BusyGpu(None, "Big GPU", "", 0, "sm_90", "")])
    with pytest.raises(
        HotpathError, match=r"measured with a GPU \(Big GPU\), but no GPU was found"
    ):
        refuse_other_machine(where, [])
    gpus = [BusyGpu(None, "Big GPU", "", 0, "sm_90", "")] * 2
    refuse_other_machine(where, gpus)
    with pytest.raises(
        HotpathError, match=r"with 2 GPUs \(Big GPU\), but only 1 of them is in use"
    ):
        refuse_other_machine(where, gpus[:1])


def test_results_of_two_kinds_of_gpu_are_not_mixed(where: Target) -> None:
    (where.root / where.machine).mkdir(parents=True)
    with pytest.raises(
        HotpathError, match=r"another kind of GPU \(Big GPU\) than this one \(Small"
    ):
        refuse_other_machine(where, [IdleGpu(None, "Small GPU", "", 0, "sm_89", "")])


@pytest.mark.parametrize(
    ("text", "message"), [('{"gpu":', "line 1"), ("[]", "expected type object")]
)
def test_a_machine_that_cannot_be_read_is_one_error(where: Target, text: str, message: str) -> None:
    (where.root / where.machine).mkdir(parents=True)
    with pytest.raises(HotpathError, match=rf"machine\.json.*{message}"):
        refuse_other_machine(where, [])


def test_larger_grid_includes_the_smaller_one(tmp_path: Path, where: Target) -> None:
    study = write_study(tmp_path / "larger", {"name": "one"})
    run(Plan(study, study.variants, GRID, where), tmp_path)
    assert pending(study, where, "default", HERE) == []
    assert pending(study, where, "full", HERE) == list(study.variants)


@pytest.mark.parametrize(("count", "machine"), [(1, "big-gpu"), (2, "big-gpu-x2")])
def test_several_gpus_are_a_machine_of_its_own(count: int, machine: str) -> None:
    gpus = [Gpu(None, "Big GPU", "", 0, "sm_90", "")] * count
    assert target(load_config(), gpus).machine == machine
    assert target(load_config({"machine": "my-box"}), gpus).machine == "my-box"


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
    assert not (where.root / where.machine / study.name / "two.csv").exists()
