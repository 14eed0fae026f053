"""Automatic creation of topics: requests to the controller, and errors to respond with."""

from collections.abc import Callable
from typing import cast

from kclient.broker.server.auto_topic_creation_manager import AutoTopicCreationManager
from kclient.broker.server.broker_config import BROKER_CONFIG
from kclient.broker.server.controller_channel import ControllerChannel
from kclient.common.broker_errors import (
    InvalidTopicError,
    PolicyViolationError,
    RequestTimedOutError,
    TopicExistsError,
    UnknownTopicOrPartitionError,
    code_of,
)
from kclient.common.errors import KafkaError
from kclient.protocol.messages.topics import (
    CreatableTopic,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)

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
        self.requests: list[CreatableTopic] = []
        self.complete: Callable[[CreateTopicsResponse | KafkaError], None]

    def change(
        self,
        request: CreateTopicsRequest,
        on_done: Callable[[CreateTopicsResponse | KafkaError], None],
        _applied: object,
    ) -> None:
        self.requests += request.topics
        self.complete = on_done


def result(name: str, error: KafkaError | None) -> CreatableTopicResult:
    code, message = (0, None) if error is None else (code_of(error), str(error))
    return CreatableTopicResult(name=name, error_code=code, error_message=message)


def created(names: list[str], *errors: KafkaError | None) -> dict[str, KafkaError]:
    """Create topics with these decisions, None for success; return the errors."""
    controller, done = Controller(), list[dict[str, KafkaError]]()
    manager = AutoTopicCreationManager(CONFIG, cast("ControllerChannel", controller))
    manager.create(names, done.append)
    assert [topic.name for topic in controller.requests] == names
    assert done == []  # until the controller has decided
    results = [result(name, error) for name, error in zip(names, errors, strict=True)]
    controller.complete(CreateTopicsResponse(topics=results))
    (found,) = done
    return found


def test_created_topic_is_unknown_until_its_metadata_is_there() -> None:
    errors = created(["a", "b"], None, TopicExistsError("by another request"))
    for name, error in errors.items():
        assert isinstance(error, UnknownTopicOrPartitionError)
        assert str(error) == f"Topic {name} is being created"


def test_error_of_the_controller_is_returned_for_its_topic() -> None:
    refused, invalid = PolicyViolationError("max.partitions"), InvalidTopicError("name")
    errors = created(["a", "b", "c"], refused, None, invalid)
    assert isinstance(errors["a"], PolicyViolationError)
    assert str(errors["a"]) == "POLICY_VIOLATION: max.partitions"
    assert isinstance(errors["b"], UnknownTopicOrPartitionError)
    assert isinstance(errors["c"], InvalidTopicError)


def test_failed_creation_is_returned_for_each_topic() -> None:
    controller, done = Controller(), list[dict[str, KafkaError]]()
    manager = AutoTopicCreationManager(CONFIG, cast("ControllerChannel", controller))
    manager.create(["a", "b"], done.append)
    failure = RequestTimedOutError("no active controller in time")
    controller.complete(failure)
    assert done == [{"a": failure, "b": failure}]


def test_offsets_topic_has_settings_of_its_own() -> None:
    controller = Controller()
    manager = AutoTopicCreationManager(CONFIG, cast("ControllerChannel", controller))
    manager.create(["t", "__consumer_offsets"], lambda _errors: None)
    plain, offsets = controller.requests
    assert plain == CreatableTopic(name="t", num_partitions=-1, replication_factor=-1)
    assert (offsets.num_partitions, offsets.replication_factor) == (7, 1)
    assert {config.name: config.value for config in offsets.configs} == {
        "cleanup.policy": "compact",
        "compression.type": "producer",
        "segment.bytes": "2000000",
    }


def test_state_of_transactions_is_compacted_and_safe() -> None:
    controller = Controller()
    manager = AutoTopicCreationManager(CONFIG, cast("ControllerChannel", controller))
    manager.create(["__transaction_state"], lambda _errors: None)
    (topic,) = controller.requests
    assert (topic.num_partitions, topic.replication_factor) == (50, 1)
    assert {each.name: each.value for each in topic.configs} == {
        "cleanup.policy": "compact",
        "compression.type": "uncompressed",
        "min.insync.replicas": "1",
        "segment.bytes": "4194304",
        "unclean.leader.election.enable": "false",
    }
