"""Record the allocator requests of real PyTorch steps as traces/*.csv.gz. Needs a GPU and torch.

python -m allocator.lib.record_traces
"""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from analysis.api.study import HotpathError

from .snapshot import Snapshot, live_blocks, record

FOLDER: Final = Path(__file__).parent
HEADER: Final = "action,allocation,bytes"

MAX_ENTRIES: Final = 1_000_000
"""Capacity of PyTorch's ring buffer of events. A full buffer may have lost its first events."""

WARM_UP_STEPS: Final = 3
STEPS: Final = 3

Row = tuple[str, int, int | None]


def rows(segments: Iterable[Any], events: Iterable[Any]) -> Iterator[Row]:
    """Rows of a trace: the allocations live in `segments` when recording began, then the `events`.

    Both come from torch.cuda.memory._snapshot. HotpathError for a free of an unknown address.
    """
    taken = Snapshot(segments=[*segments], device_traces=[[*events]])
    for number, size, _ in record(live_blocks(taken.segments), taken.device_traces[0]).requests:
        yield "free" if size is None else "allocate", number, size


def write(name: str, trace: Iterable[Row]) -> str:
    """Write traces/<name>.csv.gz, the same bytes for the same rows; returns their SHA-256."""
    lines = (
        f"{action},{number},{'' if size is None else size}\n" for action, number, size in trace
    )
    packed = gzip.compress("".join([f"{HEADER}\n", *lines]).encode(), mtime=0)
    (FOLDER / "traces" / f"{name}.csv.gz").write_bytes(packed)
    return hashlib.sha256(packed).hexdigest()


def steps_of(step: Callable[[], None]) -> list[Row]:
    """The rows of STEPS steps, after warm-up steps that fill caches and create optimiser states."""
    import torch

    memory = torch.cuda.memory
    for _ in range(WARM_UP_STEPS):
        step()
    torch.cuda.synchronize()
    memory._record_memory_history(enabled="all", context=None, max_entries=MAX_ENTRIES)
    before = memory._snapshot()["segments"]
    for _ in range(STEPS):
        step()
    torch.cuda.synchronize()
    events = memory._snapshot()["device_traces"][torch.cuda.current_device()]
    memory._record_memory_history(enabled=None)
    if len(events) >= MAX_ENTRIES:
        raise HotpathError(f"expected fewer than {MAX_ENTRIES} events, got a full ring")
    return list(rows(before, events))


def transformer(training: bool) -> Callable[[], None]:
    """A step of a 6-layer encoder on 16 sequences, whose length varies in inference."""
    import torch

    layer = torch.nn.TransformerEncoderLayer(512, 8, 2048, batch_first=True, dropout=0.0)
    model = torch.nn.Sequential(
        torch.nn.Embedding(32_000, 512),
        torch.nn.TransformerEncoder(layer, 6, enable_nested_tensor=False),
        torch.nn.Linear(512, 32_000),
    ).cuda()
    optimiser = torch.optim.AdamW(model.parameters())
    lengths = iter([64, 200, 128, 256, 96, 160])

    def train() -> None:
        tokens = torch.randint(0, 32_000, (16, 256), device="cuda")
        loss = torch.nn.functional.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten())
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        optimiser.step()

    def infer() -> None:
        with torch.inference_mode():
            model(torch.randint(0, 32_000, (16, next(lengths)), device="cuda"))

    model.train(training)
    return train if training else infer


def cnn(training: bool) -> Callable[[], None]:
    """A step of eight convolutions on images, whose number varies in inference."""
    import torch

    layers: list[Any] = []
    before = 3
    for channels in (64, 64, 128, 128, 256, 256, 512, 512):
        stride = 1 if channels == before else 2
        convolution = torch.nn.Conv2d(before, channels, 3, stride, padding=1)
        layers += [convolution, torch.nn.BatchNorm2d(channels), torch.nn.ReLU()]
        before = channels
    head = [torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(before, 1000)]
    model = torch.nn.Sequential(*layers, *head).cuda()
    optimiser = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    batches = iter([1, 32, 8, 16, 3, 24])

    def train() -> None:
        images = torch.randn(32, 3, 224, 224, device="cuda")
        labels = torch.randint(0, 1000, (32,), device="cuda")
        loss = torch.nn.functional.cross_entropy(model(images), labels)
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        optimiser.step()

    def infer() -> None:
        with torch.inference_mode():
            model(torch.randn(next(batches), 3, 224, 224, device="cuda"))

    model.train(training)
    return train if training else infer


STEPS_OF: Final[Mapping[str, Callable[[], Callable[[], None]]]] = {
    "transformer_training": lambda: transformer(True),
    "transformer_inference": lambda: transformer(False),
    "cnn_training": lambda: cnn(True),
    "cnn_inference": lambda: cnn(False),
}


def main() -> None:
    import torch

    digests = {}
    for name, make in STEPS_OF.items():
        torch.manual_seed(0)
        trace = steps_of(make())
        digests[name] = write(name, trace)
        allocations = sum(action == "allocate" for action, _, _ in trace)
        print(f"{name}: {len(trace)} operations, {allocations} of them allocate")
        torch.cuda.empty_cache()
    text = (FOLDER / "recorded.py").read_text()
    entries = "".join(f'    "{name}": "{digest}",\n' for name, digest in digests.items())
    head = text[: text.index("SHA256")]
    (FOLDER / "recorded.py").write_text(f"{head}SHA256: dict[str, str] = {{\n{entries}}}\n")


if __name__ == "__main__":
    main()
