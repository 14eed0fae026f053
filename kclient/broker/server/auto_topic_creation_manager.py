"""Automatic creation of topics."""

from collections.abc import Callable, Sequence

from kclient.broker.controller.topic_control import TopicPlan, TopicRequest
from kclient.broker.metadata.metadata_image import CONSUMER_OFFSETS
from kclient.broker.server.broker_config import BrokerConfig
from kclient.broker.server.local_controller import LocalController
from kclient.common.broker_errors import TopicExistsError, UnknownTopicOrPartitionError
from kclient.common.errors import KafkaError


class AutoTopicCreationManager:
    """Creates topics on first use (Kafka: AutoTopicCreationManager)."""

    def __init__(self, config: BrokerConfig, controller: LocalController) -> None:
        self._config = config
        self._controller = controller

    def create(
        self, names: Sequence[str], on_done: Callable[[dict[str, KafkaError]], None]
    ) -> None:
        """Create topics; `on_done` receives the error to respond with for each.

        As in Apache Kafka this is UNKNOWN_TOPIC_OR_PARTITION, which is retriable, if the topic was
        created, and the error of the creation otherwise.
        """

        def on_created(plans: list[TopicPlan | KafkaError]) -> None:
            on_done({name: _error(name, plan) for name, plan in zip(names, plans, strict=True)})

        self._controller.create_topics([self._request(name) for name in names], on_created)

    def _request(self, name: str) -> TopicRequest:
        if name != CONSUMER_OFFSETS:
            return TopicRequest(name)
        return TopicRequest(
            name,
            num_partitions=self._config.offsets_topic_num_partitions,
            replication_factor=self._config.offsets_topic_replication_factor,
            configs={
                "cleanup.policy": "compact",
                "compression.type": "producer",
                "segment.bytes": str(self._config.offsets_topic_segment_bytes),
            },
        )


def _error(name: str, plan: TopicPlan | KafkaError) -> KafkaError:
    # A concurrent request may have created the topic.
    if isinstance(plan, KafkaError) and not isinstance(plan, TopicExistsError):
        return plan
    return UnknownTopicOrPartitionError(f"Topic {name} is being created")
