"""PyTorch's allocator with expandable segments."""

SETTINGS = "expandable_segments:True"
