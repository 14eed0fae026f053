"""The words of the option `delivery`, for the data source and the functions alike."""

import difflib
from typing import Final

from kclient.common.config_def import describe
from kclient.common.errors import ConfigError

AT_LEAST_ONCE: Final = "at-least-once"
EXACTLY_ONCE: Final = "exactly-once"

NEEDS_TRANSACTIONS: Final = (
    "exactly-once delivery needs transactions, which this version's producer lacks"
)


def check_delivery(mode: object) -> None:
    """Refuse a promise that cannot be kept.

    Raises:
        ConfigError: It is anything but at-least-once.
    """
    if mode == AT_LEAST_ONCE:
        return
    if mode == EXACTLY_ONCE:
        raise ConfigError(
            f"delivery: got {EXACTLY_ONCE!r}, expected {AT_LEAST_ONCE!r}; Spark runs failed tasks "
            "again, and only a transaction for each task can hide what the first attempt wrote: "
            f"{NEEDS_TRANSACTIONS}. This option follows when it has them"
        )
    hint = ""
    if isinstance(mode, str) and difflib.get_close_matches(
        mode.lower().replace("_", "-"), [AT_LEAST_ONCE], n=1
    ):
        hint = f"; did you mean {AT_LEAST_ONCE!r}?"
    raise ConfigError(f"delivery: got {describe(mode)}, expected {AT_LEAST_ONCE!r}{hint}")
