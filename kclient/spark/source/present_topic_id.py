"""What the brokers say of a partition; asked where what comes from it, or does not, is odd."""

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


def present_topic_id(
    config: Mapping[str, str], partition: TopicPartition, runtime: Runtime
) -> str | None:
    """Return the id of the topic that a partition is of; None if there is no such partition.

    The id is empty where the brokers tell none, and where none of them can be asked.

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
            return None
        except (KafkaTimeoutError, RetriableError) as error:
            _log.info("what became of %s cannot be told now: %s", partition, error)
            return ""
    topic = found[partition.topic]
    is_there = any(one.partition == partition.partition for one in topic.partitions)
    return topic.topic_id or "" if is_there else None
