"""Dynamic settings of topics, brokers, groups and client metrics."""

from typing import Any

import pytest

from kclient.broker.controller.configuration_control import APPEND, DELETE, SET, SUBTRACT
from kclient.broker.controller.quorum_controller import QuorumController
from kclient.protocol.messages.alter_configs import (
    AlterableConfig,
    AlterConfigsRequest,
    AlterConfigsResource,
    IncrementalAlterableConfig,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResource,
)
from tests.support.virtual.memory_quorum import (
    controller_with,
    create_topic,
    heartbeat,
    levels,
    outcome_of,
)

TOPIC, BROKER, METRICS, GROUP = 2, 4, 16, 32
Change = tuple[str, int, str | None]


def alter(
    controller: QuorumController, kind: int, name: str, *changes: Change, **fields: Any
) -> int:
    """Change settings of a resource; return the error code."""
    configs = [
        IncrementalAlterableConfig(name=key, config_operation=operation, value=value)
        for key, operation, value in changes
    ]
    resource = IncrementalAlterConfigsResource(
        resource_type=kind, resource_name=name, configs=configs
    )
    request = IncrementalAlterConfigsRequest(resources=[resource], **fields)
    (result,) = outcome_of(controller, request).responses
    assert (result.resource_type, result.resource_name) == (kind, name)
    assert (result.error_message is None) == (result.error_code == 0)
    return int(result.error_code)


def test_settings_of_a_topic() -> None:
    controller, _ = controller_with(1)
    create_topic(controller, "t", {0: [1]})
    assert alter(controller, TOPIC, "t", ("retention.ms", SET, "5"), validate_only=True) == 0
    assert controller.image.topic_config("t") == {}
    assert alter(controller, TOPIC, "t", ("retention.ms", SET, "5")) == 0
    offset = controller.image.offset
    assert alter(controller, TOPIC, "t", ("retention.ms", SET, "5")) == 0
    assert controller.image.offset == offset
    assert alter(controller, TOPIC, "t", ("cleanup.policy", APPEND, "compact")) == 0
    assert controller.image.topic_config("t")["cleanup.policy"] == "delete,compact"
    assert alter(controller, TOPIC, "t", ("cleanup.policy", SUBTRACT, "delete")) == 0
    assert controller.image.topic_config("t")["cleanup.policy"] == "compact"
    changes = (("retention.ms", DELETE, None), ("cleanup.policy", DELETE, None))
    assert alter(controller, TOPIC, "t", *changes) == 0
    assert controller.image.topic_config("t") == {}


@pytest.mark.parametrize(
    ("kind", "name", "change", "code"),
    [
        (TOPIC, "absent", ("retention.ms", SET, "5"), 3),
        (TOPIC, "t", ("retention.ms", SET, None), 42),
        (TOPIC, "t", ("retention.ms", SET, "soon"), 40),
        (TOPIC, "t", ("no.such.key", SET, "1"), 40),
        (TOPIC, "t", ("retention.ms", APPEND, "5"), 40),
        (TOPIC, "t", ("retention.ms", 9, "5"), 42),
        (BROKER, "x", ("log.retention.ms", SET, "5"), 42),
        (BROKER, "7", ("log.retention.ms", SET, "5"), 102),
        (BROKER, "", ("min.insync.replicas", SET, "none"), 40),
        (METRICS, "", ("interval.ms", SET, "1000"), 42),
        (METRICS, "m", ("interval.ms", SET, "1"), 42),
        (METRICS, "m", ("other", SET, "1"), 42),
        (GROUP, "", ("consumer.session.timeout.ms", SET, "1"), 42),
        (GROUP, "g", ("consumer.session.timeout.ms", SET, "-1"), 40),
        (GROUP, "g", ("other", SET, "1"), 40),
        (8, "1", ("root", SET, "INFO"), 42),
    ],
)
def test_refusals(kind: int, name: str, change: Change, code: int) -> None:
    controller, _ = controller_with(1)
    create_topic(controller, "t", {0: [1]})
    before = controller.image
    assert alter(controller, kind, name, change) == code
    assert controller.image is before
    valid: Change = ("segment.ms", SET, "5")
    assert kind != TOPIC or alter(controller, kind, name, valid, change) == code
    assert controller.image is before


def test_other_resources() -> None:
    controller, _ = controller_with(1)
    for kind, name, key, value in (
        (BROKER, "", "unclean.leader.election.enable", "true"),
        (BROKER, "1", "log.cleaner.threads", "2"),
        (METRICS, "m", "metrics", "org.apache"),
        (GROUP, "g", "consumer.session.timeout.ms", "45000"),
    ):
        assert alter(controller, kind, name, (key, SET, value)) == 0
        assert controller.image.config(kind, name) == {key: value}
    offset = controller.image.offset
    assert alter(controller, BROKER, "1", ("log.cleaner.threads", SET, "2")) == 0
    assert controller.image.offset == offset + 1
    assert alter(controller, METRICS, "m", ("metrics", APPEND, "kclient")) == 40


def test_contradiction_to_a_kept_setting_is_refused() -> None:
    controller, _ = controller_with(1)
    create_topic(controller, "t", {0: [1]})
    assert alter(controller, TOPIC, "t", ("min.compaction.lag.ms", SET, "77")) == 0
    assert alter(controller, TOPIC, "t", ("max.compaction.lag.ms", SET, "70")) == 40
    assert alter(controller, TOPIC, "t", ("retention.ms", SET, "5" * 32_768)) == 40


def test_replacement_of_all_settings() -> None:
    controller, _ = controller_with(1)
    create_topic(controller, "t", {0: [1]})
    alter(controller, TOPIC, "t", ("retention.ms", SET, "5"), ("segment.ms", SET, "7"))
    configs = [AlterableConfig(name="segment.ms", value="8")]
    resource = AlterConfigsResource(resource_type=TOPIC, resource_name="t", configs=configs)
    response = outcome_of(controller, AlterConfigsRequest(resources=[resource]))
    assert [each.error_code for each in response.responses] == [0]
    assert controller.image.topic_config("t") == {"segment.ms": "8"}


def test_min_isr_with_eligible_leader_replicas() -> None:
    bootstrap = levels(metadata_version=25, eligible_leader_replicas_version=1)
    defaults = {"min.insync.replicas": "2"}
    controller, epochs = controller_with(1, 2, bootstrap=bootstrap, defaults=defaults)
    key = "min.insync.replicas"
    assert alter(controller, BROKER, "1", (key, SET, "1")) == 40
    assert alter(controller, BROKER, "", (key, DELETE, None)) == 40
    for name in ("t", "u"):
        create_topic(controller, name, {0: [1, 2]})
    outcome_of(controller, heartbeat(2, epochs[2], want_fence=True))
    outcome_of(controller, heartbeat(1, epochs[1], want_fence=True))
    topics = controller.image.topics
    assert [topics[name].partitions[0].elr for name in "tu"] == [(2, 1)] * 2
    assert alter(controller, TOPIC, "t", (key, SET, "1")) == 0
    topics = controller.image.topics
    assert [topics[name].partitions[0].elr for name in "tu"] == [(), (2, 1)]
    assert len(topics["t"].partitions[0].isr) == 1
    assert alter(controller, BROKER, "", (key, SET, "1")) == 0
    topics = controller.image.topics
    assert [topics[name].partitions[0].elr for name in "tu"] == [(), ()]
    for broker, epoch in epochs.items():
        outcome_of(controller, heartbeat(broker, epoch))
    topics = controller.image.topics
    assert all(topics[name].partitions[0].leader >= 0 for name in "tu")
