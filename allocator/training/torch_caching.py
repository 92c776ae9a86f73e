"""PyTorch's allocator with default settings."""

SETTINGS = "expandable_segments:False"
