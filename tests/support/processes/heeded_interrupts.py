"""Ctrl-C in runs that nobody sits in front of."""

import signal


def heed_interrupts() -> None:
    """Let SIGINT raise KeyboardInterrupt here, and end the processes that tests start.

    A shell that runs a command in the background has it ignored there and in all its children;
    tests that send it would wait in vain.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
