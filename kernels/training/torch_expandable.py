"""PyTorch's allocator with segments that grow."""

SETTINGS = "expandable_segments:True"
