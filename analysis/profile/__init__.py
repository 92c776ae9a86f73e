"""Why a variant is fast: hardware counters and timelines, captured apart from timing."""

KINDS = ("ncu", "timeline")
"""What can be captured of a variant; each is a file <variant>.<kind>.csv beside its samples."""
