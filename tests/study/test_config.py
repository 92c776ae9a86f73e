"""Valid settings in config.yaml and --config, and one error for each fault."""

from typing import Any

import pytest

from analysis.base.errors import FieldError
from analysis.base.reading import read_yaml
from analysis.study.config import CONFIG_FILE, Grid, Machine, changed, load_config
from tests.repository import STUDIES

CONFIG = read_yaml(CONFIG_FILE)


@pytest.fixture(autouse=True)
def studies_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("analysis.study.config.discover", lambda: STUDIES)


@pytest.mark.parametrize(
    ("overrides", "field", "expected", "got"),
    [
        ({"grdi": "smoke"}, "grdi", "a known key, such as 'grid'", "'grdi'"),
        ({"grids": {"smoke": {"round": 2}}}, "grids.smoke.round", "'rounds'", "'round'"),
        ({"studies": ["h2d_gatherr"]}, "studies", "'h2d_gather'", "'h2d_gatherr'"),
        ({"studies": "method"}, "studies", "a list", "'method'"),
        ({"machine": "published"}, "machine", "anything but", "'published'"),
        ({"machine": "../box"}, "machine", "text like", "'../box'"),
        ({"arch": "sm_9"}, "arch", "sm_", "'sm_9'"),
        ({"gpu": [0, 0]}, "gpu", "a list of these", "[0, 0]"),
        ({"gpu": ["-1"]}, "gpu", "GPU-", "['-1']"),
        ({"round_limit_s": 0}, "round_limit_s", "greater than 0", "0"),
        ({"machines": [{"name": "box", "runs": "6"}]}, "machines.box.runs", "equal to 5", "'6'"),
        ({"machines": [{"name": "box"}] * 2}, "machines", "every entry once", "'box'"),
    ],
)
def test_a_fault_in_the_configuration_is_one_error(
    overrides: dict[str, Any], field: str, expected: str, got: str
) -> None:
    with pytest.raises(FieldError) as caught:
        load_config(overrides)
    assert caught.value.field == f"config: {field}"
    wanted, _, given = str(caught.value).partition(", got ")
    assert expected in wanted and given == got


def test_overrides_replace_settings_of_the_file_and_may_be_text() -> None:
    config = load_config({"grid": "smoke", "studies": ["method"], "machine": "my-box"})
    assert (list(config.studies), config.machine, config.gpus) == (["method"], "my-box", (0,))
    assert config.grid.rounds == CONFIG["grids"]["smoke"]["rounds"]
    assert "build" in config.results.parts
    assert set(load_config({"studies": []}).studies) == set(STUDIES)
    assert "build" not in load_config().results.parts
    # Snakemake takes `gpu=[0, 1]`, `grids={...}` and `managed=true` for text.
    assert load_config({"gpu": ["1", "GPU-0"]}).gpus == (1, "GPU-0")
    assert load_config({"managed": "true"}).managed
    grids = CONFIG["grids"] | {"smoke": {"rounds": "3", "samples": "1", "sample_budget_s": "0.5"}}
    machines = [{"name": "123", "constraint": "90", "gpus": "8", "runs": "2"}]
    config = load_config({"grid": "smoke", "grids": grids, "machines": machines})
    assert config.grid == Grid(name="smoke", rounds=3, samples=1, sample_budget_s=0.5)
    assert config.machines == (Machine(name="123", constraint="90", gpus=8, runs=2),)
    # Snakemake's copy of the file's settings is no change of them.
    assert changed({"managed": False, "grids": CONFIG["grids"], "gpu": "1"}) == {"gpu": "1"}
