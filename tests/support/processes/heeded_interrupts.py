"""SIGINT handling of test runs in the background."""

import signal


def heed_interrupts() -> None:
    """Make SIGINT raise KeyboardInterrupt in this process and in processes that tests start.

    A shell that runs a command in the background makes it and its children ignore SIGINT;
    tests that send it would time out.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
