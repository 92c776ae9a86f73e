"""SHA-256 of each recorded trace: another trace is another pattern. Written by the recorder."""

SHA256: dict[str, str] = {}
