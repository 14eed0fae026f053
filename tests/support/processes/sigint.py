"""SIGINT for the main thread, at moments that a test chooses."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


def interrupt_main_thread() -> None:
    """Send SIGINT to the main thread, from any thread."""
    signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)


@contextmanager
def repeated_interrupts(interval: float = 0.01) -> Iterator[None]:
    """Send SIGINT to the main thread at intervals (seconds) until the block ends.

    For waits that no other thread can observe: one of the signals finds the thread waiting.
    """
    over = threading.Event()

    def run() -> None:
        while not over.wait(interval):
            interrupt_main_thread()

    thread = threading.Thread(target=run, name="interrupts")
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
