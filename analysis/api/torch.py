"""PyTorch's current stream; imports PyTorch."""

from analysis.measure.torch_stream import use
