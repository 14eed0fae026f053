"""What Ctrl-C, or another exception of a signal handler, must not keep from being done."""

from collections.abc import Callable


def surely(step: Callable[[], None]) -> None:
    """Do what must be done, also if Ctrl-C strikes on the way; the step may be done twice."""
    try:
        step()
    except BaseException:
        step()
        raise
