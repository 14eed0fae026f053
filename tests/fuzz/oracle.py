"""Oracle: checks errors, log lines, memory and time of a target for one input."""

import gc
import hashlib
import logging
import time
import traceback
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from kclient.common.errors import KafkaError
from tests.fuzz.target import CANARY, Target

MAX_UNITS = 200.0
"""Limit of the CPU time for one input, in units of `unit_of_time`: about a second in 2026."""

_UNIT_STEPS = 50_000

_SECRET = CANARY.decode()
_ROOT = Path(__file__).parents[2]
_PACKAGES = ("kclient", "tests")


class FindingError(Exception):
    """An input for which a target violates a check.

    Attributes:
        place: Identifies the fault, so that it is reported once.
    """

    def __init__(self, place: str, text: str) -> None:
        super().__init__(text)
        self.place = place


@contextmanager
def refusals() -> Iterator[None]:
    """Accept a KafkaError of the target, whose text must not contain the canary."""
    try:
        yield
    except KafkaError as error:
        _check_text(str(error), "error text")


def _check_text(text: str, where: str) -> None:
    if _SECRET in text:
        raise FindingError(f"secret in {where}", f"{where} contains a secret: {text:.300}")


class _LogWatch(logging.Handler):
    """Log handler that records unexpected failures and lines that contain the canary."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.noted: list[FindingError] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Check a log record."""
        text = record.getMessage()
        failure = record.exc_info[1] if record.exc_info else None
        if failure is not None and not isinstance(failure, KafkaError | OSError):
            shown = "".join(traceback.format_exception(failure))
            self.noted.append(FindingError(f"logged {_place(failure)}", f"logged: {text}\n{shown}"))
        elif _SECRET in text:
            self.noted.append(FindingError(f"secret in log line of {record.name}", text[:300]))


def _place(error: BaseException) -> str:
    """Return the class of an error and the innermost line of kclient or tests in its traceback."""
    place = ""
    for frame in traceback.extract_tb(error.__traceback__):
        path = Path(frame.filename)
        if any(path.is_relative_to(_ROOT / package) for package in _PACKAGES):
            place = f"{path.relative_to(_ROOT)}:{frame.lineno}"
    return f"{type(error).__name__} at {place}"


def work_of_a_unit() -> int:
    """Do a fixed number of steps of the interpreter."""
    total = 0
    for number in range(_UNIT_STEPS):
        total += number & 1
    return total


def unit_of_time() -> float:
    """Return the CPU time of a unit of work at the machine's present speed, in seconds."""
    return max(_cpu_seconds(work_of_a_unit) for _ in range(3))


def _cpu_seconds(work: Callable[[], object]) -> float:
    started = time.process_time()
    work()
    return time.process_time() - started


class Oracle:
    """Runs inputs of a target and applies the checks.

    Args:
        target: The target.
        max_units: Limit of the CPU time for one input, in units of `unit_of_time`.
    """

    def __init__(self, target: Target, max_units: float = MAX_UNITS) -> None:
        self._target = target
        self._max_units = max_units
        self._unit = unit_of_time()
        self._watch = _LogWatch()
        self._logger = logging.getLogger("kclient")
        self._level, self._propagate = self._logger.level, self._logger.propagate
        self._logger.addHandler(self._watch)
        self._logger.setLevel(logging.DEBUG)
        self._logger.propagate = False

    def close(self) -> None:
        """Remove the log handler."""
        self._logger.removeHandler(self._watch)
        self._logger.setLevel(self._level)
        self._logger.propagate = self._propagate

    def check(self, data: bytes, *, measure: bool = True) -> None:
        """Run one input.

        Args:
            data: The input.
            measure: Whether to measure memory, which slows the run down several times.

        Raises:
            FindingError: The target violated a check.
        """
        if measure:
            self._check_memory(data)
            return
        if self._units(data) > self._max_units:
            # Measured again: the machine may be slower now, and the first use of a decoder
            # generates it.
            self._unit = unit_of_time()
            units = min(self._units(data) for _ in range(2))
            if units > self._max_units:
                raise FindingError("too slow", f"{len(data)} bytes took {units:.0f} units of time")

    def _units(self, data: bytes) -> float:
        return _cpu_seconds(lambda: self._run(data)) / self._unit

    def _run(self, data: bytes) -> None:
        self._watch.noted.clear()
        try:
            self._target.run(data)
        except FindingError:
            raise
        except Exception as error:  # noqa: BLE001 - whatever it is, it should not have been
            text = "".join(traceback.format_exception(error))
            raise FindingError(_place(error), text) from None
        if self._watch.noted:
            raise self._watch.noted[0]

    def _check_memory(self, data: bytes) -> None:
        allowed = self._target.memory(len(data))
        held = self._peak(data)
        if held > allowed:  # repeated, since the first use of a decoder generates it
            gc.collect()
            held = min(held, self._peak(data))
        if held > allowed:
            raise FindingError(
                "too much memory", f"{len(data)} bytes of input held {held} bytes of memory"
            )

    def _peak(self, data: bytes) -> int:
        tracemalloc.start()
        try:
            self._run(data)
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()


def input_name(data: bytes) -> str:
    """Return a short name for an input."""
    return hashlib.sha256(data).hexdigest()[:16]
