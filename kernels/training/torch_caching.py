"""PyTorch's allocator as it is where nothing is set."""

SETTINGS = "expandable_segments:False"
