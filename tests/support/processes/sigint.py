"""SIGINT for the main thread, at moments that a test chooses."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


def interrupt_main_thread() -> None:
    """Send SIGINT to the main thread, from any thread."""
    signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)


@contextmanager
def repeated_interrupts(interval: float = 0.01) -> Iterator[None]:
    """Send SIGINT to the main thread at intervals (seconds) until one has ended the block.

    For waits that no other thread can observe: one of the signals finds the thread waiting. Those
    that follow the KeyboardInterrupt are ignored, since they could end this clean-up.
    """
    over = threading.Event()
    handle = signal.getsignal(signal.SIGINT)
    assert callable(handle)

    def interrupt_once(number: int, frame: FrameType | None) -> None:
        if over.is_set():
            return
        try:
            handle(number, frame)
        except KeyboardInterrupt:
            over.set()
            raise

    def run() -> None:
        while not over.wait(interval):
            interrupt_main_thread()

    signal.signal(signal.SIGINT, interrupt_once)
    thread = threading.Thread(target=run, name="interrupts")
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        signal.signal(signal.SIGINT, handle)
