"""From the option `delivery` to what keeps its promise."""

from collections.abc import Mapping

from kclient.producer.deadline import check_timeout
from kclient.spark.options.delivery_option import check_delivery
from kclient.spark.sink.at_least_once import AtLeastOnce
from kclient.spark.sink.delivery import Delivery
from kclient.spark.sink.producer_settings import ProducerSettings


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
