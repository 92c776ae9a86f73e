"""The copied rows, and their expected bytes."""

POISON = 0xA5
