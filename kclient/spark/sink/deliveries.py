"""Choice of the delivery by the option ``delivery``."""

from collections.abc import Mapping

from kclient.common.arguments import check_seconds
from kclient.common.config_def import describe
from kclient.common.errors import ConfigError
from kclient.spark.options.sink_options import EXACTLY_ONCE, check_delivery, check_id
from kclient.spark.sink.at_least_once import AtLeastOnce
from kclient.spark.sink.delivery import Delivery
from kclient.spark.sink.exactly_once import ExactlyOnce, TransactionClients
from kclient.spark.sink.producer_settings import ProducerSettings
from kclient.spark.sink.sink_identity import SinkIdentity


def delivery_for(
    mode: object,
    conf: Mapping[str, object],
    flush_timeout: float | None,
    identity: SinkIdentity,
) -> Delivery:
    """Return the delivery for a value of the option ``delivery``.

    Args:
        mode: Value of the option.
        conf: Configuration of the producers.
        flush_timeout: Longest wait of a task for its last acknowledgements, seconds.
        identity: Names of the transactions; without effect at least once.

    Raises:
        ConfigError: The mode is unknown, or an option is wrong.
    """
    check_delivery(mode)
    seconds = None if flush_timeout is None else check_seconds("flush_timeout", flush_timeout)
    settings = ProducerSettings(conf)
    if mode == EXACTLY_ONCE:
        return ExactlyOnce(TransactionClients(settings), identity, seconds)
    return AtLeastOnce(settings, seconds)


def check_sink_id(
    delivery: object, option: str, sink_id: object, *, is_required: bool
) -> str | None:
    """Validate the id of a sink or of a single write with respect to the delivery.

    Args:
        delivery: Value of the option ``delivery``.
        option: Name of the option with the id, for errors.
        sink_id: The id; None if it is not given.
        is_required: Whether exactly-once delivery needs it.

    Raises:
        ConfigError: The id is missing, malformed or has no effect.
    """
    if sink_id is None:
        if delivery == EXACTLY_ONCE and is_required:
            raise ConfigError(
                f"{option}: got nothing, expected an id for delivery {EXACTLY_ONCE!r}, which no "
                "other sink uses, and which is the same when the job is repeated"
            )
        return None
    if delivery != EXACTLY_ONCE:
        raise ConfigError(
            f"{option}: got {describe(sink_id)}, expected it with delivery {EXACTLY_ONCE!r} only"
        )
    return check_id(option, sink_id)
