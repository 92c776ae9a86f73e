"""What every command of this package has in common."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Final

from analysis.errors import HotpathError, told
from analysis.processes import end_with_starter, interrupt_once

INTERRUPTED: Final = 130
"""Exit code of a program that was interrupted, as shells give it."""


def fail_in_one_line(main: Callable[[], None]) -> None:
    """Run `main`; an error a person can mend ends it with that error alone and exit code 1.

    SIGTERM ends it as SIGINT does: after tidying up. So does the end of the workflow it is part of.
    """
    interrupt_once()
    end_with_starter()
    try:
        main()
    except HotpathError as error:
        sys.exit(f"error: {error}")
    except OSError as error:
        if (message := told(error)) is None:
            raise
        sys.exit(f"error: {message}")
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        sys.exit(INTERRUPTED)
