"""From built variants to raw samples: a process a round, every output checked before timing."""
