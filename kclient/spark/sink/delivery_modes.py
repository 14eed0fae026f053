"""What the option `delivery` takes."""

import difflib
from collections.abc import Mapping
from typing import Final

from kclient.common.config_def import describe
from kclient.common.errors import ConfigError
from kclient.producer.deadline import check_timeout
from kclient.spark.sink.at_least_once import AtLeastOnce
from kclient.spark.sink.delivery import Delivery
from kclient.spark.sink.producer_settings import ProducerSettings

AT_LEAST_ONCE: Final = "at-least-once"
EXACTLY_ONCE: Final = "exactly-once"


def delivery_of(mode: object, conf: Mapping[str, object], flush_timeout: float | None) -> Delivery:
    """Return what keeps the promise that the user chose.

    Args:
        mode: The option ``delivery``.
        conf: Options of the producers.
        flush_timeout: Seconds that a task may wait for its last acknowledgements.

    Raises:
        ConfigError: The promise is unknown or cannot be kept, or an option is wrong.
    """
    check_delivery(mode)
    return AtLeastOnce(ProducerSettings(conf), check_timeout("flush_timeout", flush_timeout))


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
            "again, and only a transaction for each task can hide what the first attempt wrote. "
            "The producer has no transactions yet; this option follows when it has them"
        )
    hint = ""
    if isinstance(mode, str) and difflib.get_close_matches(
        mode.lower().replace("_", "-"), [AT_LEAST_ONCE], n=1
    ):
        hint = f"; did you mean {AT_LEAST_ONCE!r}?"
    raise ConfigError(f"delivery: got {describe(mode)}, expected {AT_LEAST_ONCE!r}{hint}")
