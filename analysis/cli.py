"""What every command of this package has in common."""

from __future__ import annotations

import sys
from collections.abc import Callable

from analysis.errors import HotpathError


def fail_in_one_line(main: Callable[[], None]) -> None:
    """Run `main`; an error a person can mend ends it with that error alone and exit code 1."""
    try:
        main()
    except HotpathError as error:
        sys.exit(f"error: {error}")
