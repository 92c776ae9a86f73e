"""What every command of this package has in common."""

from __future__ import annotations

import errno
import signal
import sys
from collections.abc import Callable
from typing import Final

from analysis.errors import HotpathError
from analysis.processes import end_with_starter

MENDS: Final = {
    errno.ENOSPC: "make room, then run the same command again",
    errno.EDQUOT: "make room, then run the same command again",
    errno.EROFS: "use a copy that can be written to",
    errno.EACCES: "use a copy of your own, or ask its owner",
    errno.EPERM: "use a copy of your own, or ask its owner",
}
"""What a person can do where a file cannot be written or read."""
INTERRUPTED: Final = 130
"""Exit code of a program that was interrupted, as shells give it."""


def fail_in_one_line(main: Callable[[], None]) -> None:
    """Run `main`; an error a person can mend ends it with that error alone and exit code 1.

    SIGTERM ends it as SIGINT does: after tidying up. So does the end of the workflow it is part of.
    """
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    end_with_starter()
    try:
        main()
    except HotpathError as error:
        sys.exit(f"error: {error}")
    except OSError as error:
        if error.errno not in MENDS:
            raise
        where = f"{error.filename}: " if error.filename else ""
        sys.exit(f"error: {where}{error.strerror}; {MENDS[error.errno]}")
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        sys.exit(INTERRUPTED)
