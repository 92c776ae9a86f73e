"""CPUs as Linux lists them."""

from __future__ import annotations


def parse_cpu_list(text: str) -> list[int]:
    """The CPUs of a list like `0-3,8`, in its order; none of an empty one."""
    spans = [span.split("-") for span in text.strip().split(",") if span]
    return [cpu for span in spans for cpu in range(int(span[0]), int(span[-1]) + 1)]
