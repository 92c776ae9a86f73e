"""The rows that are copied, and what must arrive."""

POISON = 0xA5
