"""Whether a partition is there at all; asked where nothing comes from it."""

import logging
from collections.abc import Mapping

from kclient.admin.admin_client import AdminClient
from kclient.common.broker_errors import UnknownTopicOrPartitionError
from kclient.common.errors import KafkaTimeoutError, RetriableError
from kclient.common.runtime import Runtime
from kclient.common.types import TopicPartition
from kclient.spark.options.kafka_config import admin_config

_log = logging.getLogger(__name__)

_TIMEOUT_S = 5.0


def is_there(config: Mapping[str, str], partition: TopicPartition, runtime: Runtime) -> bool:
    """Return whether the brokers know a partition; where none can be asked, it counts as there.

    Args:
        config: Configuration of a consumer, by dotted name.
        partition: The partition.
        runtime: Door to the world.

    Raises:
        KafkaError: The brokers refuse to say.
    """
    with AdminClient(admin_config(config), runtime=runtime) as admin:
        try:
            found = admin.describe_topics([partition.topic], timeout=_TIMEOUT_S)
        except UnknownTopicOrPartitionError:
            return False
        except (KafkaTimeoutError, RetriableError) as error:
            _log.info("whether there is a partition %s cannot be told now: %s", partition, error)
            return True
    known = found[partition.topic].partitions
    return any(one.partition == partition.partition for one in known)
