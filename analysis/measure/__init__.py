"""From built variants to raw samples: one process per round, every output checked before timing."""
