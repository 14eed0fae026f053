"""The asyncio admin client, against Apache Kafka."""

import asyncio

import pytest

from integration.conftest import StartCluster
from integration.harness.discovery import NEWEST
from integration.harness.kafka_cluster import ClusterOptions
from kclient import NewTopic, TopicPartition
from kclient.admin import AlterConfigOp, ConfigResource, ConfigResourceType, ElectionType
from kclient.aio import AdminClient
from kclient.errors import GroupIdNotFoundError, TopicExistsError

TOPIC = "awaited"


async def _calls(admin: AdminClient) -> None:
    created = await admin.create_topics(NewTopic(TOPIC, 3, 1))
    with pytest.raises(TopicExistsError, match=TOPIC):
        await admin.create_topics(NewTopic(TOPIC))
    resource = ConfigResource(ConfigResourceType.TOPIC, TOPIC)
    (
        await admin.incremental_alter_configs({resource: [AlterConfigOp("retention.ms", "1000")]})
    ).raise_for_errors()
    async with asyncio.timeout(30):  # the broker applies settings after the controller
        while (await admin.describe_configs(resource))[resource]["retention.ms"].value != "1000":
            continue
    described, cluster, groups = await asyncio.gather(
        admin.describe_topics(TOPIC, partition_size_limit_per_response=2),
        admin.describe_cluster(),
        admin.list_groups(),
    )
    assert described[TOPIC].topic_id == created[TOPIC].topic_id
    assert len(described[TOPIC].partitions) == 3
    assert (len(cluster.nodes), groups) == (1, [])
    partition = TopicPartition(TOPIC, 0)
    elected = await admin.elect_leaders(ElectionType.PREFERRED, partition)
    assert elected == {partition: False}
    assert (await admin.describe_metadata_quorum()).leader_id == cluster.nodes[0].id
    with pytest.raises(GroupIdNotFoundError, match="unknown"):
        await admin.delete_consumer_groups("unknown")


async def _cancelled_calls(admin: AdminClient) -> None:
    """Cancel calls at different times, and use the client after each."""
    for number in range(30):
        name = f"cancelled-{number}"
        with pytest.raises((TimeoutError, TopicExistsError)):  # noqa: PT012 (one of two calls)
            async with asyncio.timeout(number / 1000):
                await admin.create_topics(NewTopic(name, 1, 1))
                await admin.create_topics(NewTopic(name, 1, 1))
        names = {topic.name for topic in await admin.list_topics()}
        assert names <= {TOPIC, *(f"cancelled-{each}" for each in range(number + 1))}


async def _test(bootstrap: str) -> None:
    async with AdminClient(bootstrap_servers=bootstrap) as admin:
        await _calls(admin)
        await _cancelled_calls(admin)
        assert asyncio.all_tasks() == {asyncio.current_task()}


def test_calls_are_awaited_and_cancelled(start_cluster: StartCluster) -> None:
    cluster = start_cluster(ClusterOptions(nodes=1, heap_mb=384), NEWEST)
    asyncio.run(_test(cluster.bootstrap()))
