"""Levels of this process's loggers, as the resource BROKER_LOGGER (Kafka: RuntimeLoggerManager).

They are the loggers of the package, with Kafka's names of levels; ``root`` is the one above them.
Changes are not kept over a restart.
"""

import logging
from collections.abc import Iterator
from typing import Final

from kclient.broker.controller.configuration_control import APPEND, DELETE, SET, SUBTRACT
from kclient.common.broker_errors import InvalidConfigurationError, InvalidRequestError

ROOT: Final = "root"
_PACKAGE: Final = __name__.partition(".")[0]
_TRACE: Final = 5
_LEVELS: Final = {
    "DEBUG": logging.DEBUG,
    "ERROR": logging.ERROR,
    "FATAL": logging.CRITICAL,
    "INFO": logging.INFO,
    "TRACE": _TRACE,
    "WARN": logging.WARNING,
}


_replaced: Final[dict[str, int]] = {}
"""Levels before the first change, by logger."""


def levels() -> Iterator[tuple[str, str]]:
    """Yield the names of the loggers with their levels in force."""
    for name in (ROOT, *sorted(_names())):
        level = _logger(name).getEffectiveLevel()
        yield name, next((text for text, number in _LEVELS.items() if number == level), str(level))


def check_level(name: str, operation: int, value: str | None) -> None:
    """Check a change of a level.

    Raises:
        InvalidConfigurationError: There is no such logger or level.
        InvalidRequestError: The operation is not possible.
    """
    if operation not in (SET, DELETE):
        texts = {APPEND: "APPEND", SUBTRACT: "SUBTRACT"}
        text = texts.get(operation, str(operation))
        raise InvalidRequestError(f"{text} operation is not allowed for the BROKER_LOGGER resource")
    if name != ROOT and name not in _names():
        raise InvalidConfigurationError(f"Logger {name:.250} does not exist!")
    if operation == DELETE and name == ROOT:
        raise InvalidRequestError("Removing the log level of the root logger is not allowed")
    if operation == SET and value not in _LEVELS:
        raise InvalidConfigurationError(
            f"Cannot set the log level of {name} to {value!s:.80} as it is not a supported log "
            f"level. Valid log levels are {', '.join(_LEVELS)}"
        )


def change_level(name: str, operation: int, value: str | None) -> None:
    """Change a level that was checked; without one of its own, a logger has that of its parent."""
    is_set = operation == SET and value is not None
    logger = _logger(name)
    _replaced.setdefault(logger.name, logger.level)
    logger.setLevel(_LEVELS[value or ""] if is_set else logging.NOTSET)


def restore_levels() -> None:
    """Undo the changes: the process of an embedded broker continues after its end."""
    while _replaced:
        name, level = _replaced.popitem()
        logging.getLogger(name).setLevel(level)


def _names() -> set[str]:
    prefix = f"{_PACKAGE}."
    known = logging.Logger.manager.loggerDict
    return {
        name
        for name, logger in list(known.items())
        if name.startswith(prefix) and isinstance(logger, logging.Logger)
    }


def _logger(name: str) -> logging.Logger:
    return logging.getLogger(_PACKAGE if name == ROOT else name)
