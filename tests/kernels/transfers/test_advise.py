"""The command that names the call to use, and the file that it exports."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from analysis.base.errors import HotpathError
from kernels.transfers.advise import main, parse_count, parse_size
from tests.kernels.transfers.fake import results_of

Advise = Callable[..., list[str]]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return results_of(tmp_path_factory.mktemp("advise"))


@pytest.fixture
def advise(
    results: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Advise:
    """Runs the command with these words, and returns its lines."""

    def run(*words: str) -> list[str]:
        monkeypatch.setattr("sys.argv", ["advise", "--results", str(results), *words])
        main()
        return capsys.readouterr().out.splitlines()

    return run


def test_a_cell_has_its_time_and_all_ways_and_between_cells_are_ranges(advise: Advise) -> None:
    first, use, where, *ways = advise("--size", "4KiB", "--count", "256")
    assert first == (
        "box: 256 pieces of 4096 B, h2d, scattered on the host, scattered on the device,"
        " pinned memory, idle stream"
    )
    assert use.startswith("Use our copy kernel on all SMs: ") and use.endswith(" GB/s.")
    assert where == "Measured: 256 × 4 KiB."
    assert [line.split()[0] for line in ways] == ["pinned_list_gather", "pinned_list_loop"]
    _, use, where, *_ = advise("--size", "4KiB", "--count", "1000")
    assert " GB/s to " in use
    assert where.replace("\u202f", ",") == "Measured: 256 × 4 KiB, 4,096 × 4 KiB."


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--size 8KiB --count 9999", "box.*not measured: .* The nearest measured cell: "),
        ("--size 1001 --count 16", "box.*All measured sizes are multiples of 16 B"),
        ("--size 4KiB --memory registered", "box.*registered memory.*not measured: 1 × 4 KiB$"),
        ("--size 4KiB --machine nosuch", r"--machine: expected one of \['box'\], got 'nosuch'"),
    ],
)
def test_other_questions_are_refused(advise: Advise, words: str, message: str) -> None:
    with pytest.raises(HotpathError, match=f"^{message}"):
        advise(*words.split())


def test_the_file_has_the_answers_of_a_machine(advise: Advise, tmp_path: Path) -> None:
    path = tmp_path / "answers.json"
    assert advise("--export", str(path)) == []
    file = json.loads(path.read_text())
    assert (file["format"], file["machine"]) == ("hotpath-transfers-answers", "box")
    keys = ("memory", "direction", "host", "device", "is_busy")
    wanted = ["pinned", "h2d", "scattered", "scattered", False]
    (table,) = (one for one in file["tables"] if [one[key] for key in keys] == wanted)
    (by_count,) = (inner for low, high, inner in table["spans"] if low <= 4096 <= high)
    (place,) = (inner for low, high, inner in by_count if low <= 256 <= high)
    found = table["answers"][place]
    assert (found["way"], found["cells"]) == ("pinned_list_gather", [[4096, 256]])
    assert set(found["seconds"]) == {"pinned_list_gather", "pinned_list_loop"}


@pytest.mark.parametrize(
    ("text", "size"), [("1", 1), ("4KiB", 4096), ("16 MiB", 2**24), ("1GiB", 2**30), ("7B", 7)]
)
def test_sizes_are_read(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize(
    ("parse", "text", "message"),
    [
        *((parse_size, text, "expected bytes such as") for text in ("", "0", "4KB", "9" * 5000)),
        *((parse_count, text, "at least 1, got") for text in ("0", "9" * 5000)),
    ],
)
def test_other_words_are_rejected(parse: Callable[[str], int], text: str, message: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match=message):
        parse(text)
