"""PyTorch's current stream."""

from analysis.measure.memory import use
