"""Why a variant is fast: hardware counters and timelines, captured apart from timing."""
