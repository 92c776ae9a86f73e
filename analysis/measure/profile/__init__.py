"""Why a variant is fast: hardware counters and timelines, captured separately from timing."""
