"""Valid settings in config.yaml and --config, and one error for each fault."""

from __future__ import annotations

from typing import Any

import pytest

from analysis.base.errors import FieldError
from analysis.base.reading import read_yaml
from analysis.study.config import CONFIG_FILE, Grid, Machine, changed, load_config
from tests.repository import STUDIES

CONFIG = read_yaml(CONFIG_FILE)


@pytest.fixture(autouse=True)
def studies_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every load of the configuration would read all studies, which takes most of the time."""
    monkeypatch.setattr("analysis.study.config.discover", lambda: STUDIES)


@pytest.mark.parametrize(
    ("overrides", "field", "expected", "got"),
    [
        ({"grdi": "smoke"}, "grdi", "['studies', 'grid'", "'smoke'"),
        ({"grids": {"smoke": {"round": 2}}}, "grids.smoke.round", "one of [", "2"),
        ({"studies": ["h2d_gatherr"]}, "studies", "'h2d_gather'", "'h2d_gatherr'"),
        ({"studies": "method"}, "studies", "type array", "'method'"),
        ({"grid": "huge"}, "grid", "['smoke', 'default', 'full']", "'huge'"),
        ({"machine": "published"}, "machine", "anything but", "'published'"),
        ({"machine": "My Box"}, "machine", "text like", "'My Box'"),
        ({"machine": "../box"}, "machine", "text like", "'../box'"),
        ({"arch": "90"}, "arch", "sm_", "'90'"),
        ({"arch": "sm_9"}, "arch", "sm_", "'sm_9'"),
        ({"gpu": -1}, "gpu", "at least 0", "-1"),
        ({"gpu": "first"}, "gpu", "GPU-", "'first'"),
        ({"gpu": []}, "gpu", "a list of these", "[]"),
        ({"gpu": [0, 0]}, "gpu", "a list of these", "[0, 0]"),
        ({"gpu": [0, "one"]}, "gpu", "a list of these", "[0, 'one']"),
        ({"shared_gpu": "allow"}, "shared_gpu", "['refuse', 'record']", "'allow'"),
        ({"round_limit_s": 0}, "round_limit_s", "above 0", "0"),
        ({"nvcc": ""}, "nvcc", "not empty", "''"),
    ],
)
def test_a_fault_in_the_configuration_is_one_error(
    overrides: dict[str, Any], field: str, expected: str, got: str
) -> None:
    with pytest.raises(FieldError) as caught:
        load_config(overrides)
    assert caught.value.field == (f"config: {field}" if field else "config")
    said_expected, _, said_got = str(caught.value).partition(", got ")
    assert expected in said_expected
    assert got in said_got


def test_overrides_replace_settings_of_the_file() -> None:
    config = load_config({"grid": "smoke", "studies": ["method"], "machine": "my-box"})
    assert list(config.studies) == ["method"]
    assert config.grid.rounds == CONFIG["grids"]["smoke"]["rounds"]
    assert config.machine == "my-box"
    assert config.gpus == (0,)
    assert load_config({"gpu": [1, "GPU-0"]}).gpus == (1, "GPU-0")
    assert "build" in config.results.parts
    assert set(load_config({"studies": []}).studies) == set(STUDIES)
    assert "build" not in load_config().results.parts


def test_booleans_of_a_command_line_are_those_of_yaml() -> None:
    words = {"true": True, True: True, "false": False}
    assert {word: load_config({"managed": word}).managed for word in words} == words
    with pytest.raises(FieldError, match=r"managed: expected type boolean, got 'maybe'"):
        load_config({"managed": "maybe"})


def test_numbers_in_a_list_of_a_command_line_are_numbers() -> None:
    """Snakemake takes `--config 'gpu=[0, 1]'` for a list of text."""
    assert load_config({"gpu": ["0", "1"]}).gpus == (0, 1)
    assert load_config({"gpu": ["1", "GPU-0"]}).gpus == (1, "GPU-0")
    with pytest.raises(FieldError, match=r"gpu: expected .*, got \['-1'\]"):
        load_config({"gpu": ["-1"]})


def test_numbers_deep_within_a_command_line_are_numbers_and_names_stay_names() -> None:
    """Snakemake passes `--config 'grids={...}' 'machines=[...]'` as text."""
    smoke = {"rounds": "3", "samples": "1", "sample_budget_s": "0.5"}
    grids = CONFIG["grids"] | {"smoke": smoke}
    machines = [{"name": "123", "constraint": "90", "gpus": "8", "runs": "2"}]
    config = load_config({"grid": "smoke", "grids": grids, "machines": machines})
    assert config.grid == Grid(name="smoke", rounds=3, samples=1, sample_budget_s=0.5)
    assert config.machines == (Machine(name="123", constraint="90", gpus=8, runs=2),)
    with pytest.raises(FieldError, match=r"^config: machines.box.runs: .* at most 5, got '6'$"):
        load_config({"machines": [{"name": "box", "runs": "6"}]})
    with pytest.raises(FieldError, match=r"grids.smoke.rounds: .* integer, got '2.5'$"):
        load_config({"grids": grids | {"smoke": smoke | {"rounds": "2.5"}}})
    # Snakemake's copy of the file's settings is no change of them.
    assert changed({"managed": "false", "grids": CONFIG["grids"], "gpu": "1"}) == {"gpu": 1}
