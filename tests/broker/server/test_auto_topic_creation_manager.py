"""Automatic creation of topics: requests to the controller, and errors to respond with."""

from collections.abc import Callable, Sequence
from typing import cast

from kclient.broker.controller.topic_control import TopicPlan, TopicRequest
from kclient.broker.server.auto_topic_creation_manager import AutoTopicCreationManager
from kclient.broker.server.broker_config import BROKER_CONFIG
from kclient.broker.server.local_controller import LocalController
from kclient.common.broker_errors import (
    InvalidTopicError,
    PolicyViolationError,
    TopicExistsError,
    UnknownTopicOrPartitionError,
)
from kclient.common.errors import KafkaError

CONFIG = BROKER_CONFIG.parse(
    {
        "log.dir": "d",
        "offsets.topic.num.partitions": 7,
        "offsets.topic.segment.bytes": 2_000_000,
    }
)


class Controller:
    """Controller whose decision the test makes."""

    def __init__(self) -> None:
        self.requests: list[TopicRequest] = []
        self.complete: Callable[[list[TopicPlan | KafkaError]], None]

    def create_topics(
        self,
        requests: Sequence[TopicRequest],
        on_done: Callable[[list[TopicPlan | KafkaError]], None],
    ) -> None:
        self.requests += requests
        self.complete = on_done


def created(names: list[str], *plans: KafkaError | None) -> dict[str, KafkaError]:
    """Create topics with these decisions, None for success; return the errors."""
    controller, done = Controller(), list[dict[str, KafkaError]]()
    manager = AutoTopicCreationManager(CONFIG, cast("LocalController", controller))
    manager.create(names, done.append)
    assert [request.name for request in controller.requests] == names
    assert done == []  # until the controller has decided
    controller.complete([plan or cast("TopicPlan", object()) for plan in plans])
    (errors,) = done
    return errors


def test_created_topic_is_unknown_until_its_metadata_is_there() -> None:
    errors = created(["a", "b"], None, TopicExistsError("by another request"))
    for name, error in errors.items():
        assert isinstance(error, UnknownTopicOrPartitionError)
        assert str(error) == f"Topic {name} is being created"


def test_error_of_the_controller_is_returned_for_its_topic() -> None:
    refused, invalid = PolicyViolationError("max.partitions"), InvalidTopicError("name")
    errors = created(["a", "b", "c"], refused, None, invalid)
    assert errors["a"] is refused
    assert isinstance(errors["b"], UnknownTopicOrPartitionError)
    assert errors["c"] is invalid


def test_offsets_topic_has_settings_of_its_own() -> None:
    controller = Controller()
    manager = AutoTopicCreationManager(CONFIG, cast("LocalController", controller))
    manager.create(["t", "__consumer_offsets"], lambda _errors: None)
    plain, offsets = controller.requests
    assert plain == TopicRequest("t")
    assert (offsets.num_partitions, offsets.replication_factor) == (7, 1)
    assert offsets.configs == {
        "cleanup.policy": "compact",
        "compression.type": "producer",
        "segment.bytes": "2000000",
    }
