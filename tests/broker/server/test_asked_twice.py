"""Entries repeated in one request are returned once."""

import pytest

from kclient.protocol.messages.committed_offsets import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)
from kclient.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from kclient.protocol.messages.groups import DescribeGroupsRequest, DescribeGroupsResponse
from kclient.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from tests.support.clients.wire import Wire

pytestmark = pytest.mark.fault("B16")

OFTEN = 1000


def test_metadata(wire: Wire, topic: str) -> None:
    """Also for one name with several topic ids, which are ignored."""
    wanted = [
        MetadataRequestTopic(name=topic, topic_id=number.to_bytes(16, "big"))
        for number in range(OFTEN)
    ]
    response = wire.ask(MetadataRequest(topics=wanted), 12, MetadataResponse)
    assert [found.name for found in response.topics] == [topic]
    by_id = [MetadataRequestTopic(name=None, topic_id=response.topics[0].topic_id)] * OFTEN
    again = wire.ask(MetadataRequest(topics=by_id), 12, MetadataResponse)
    assert [found.name for found in again.topics] == [topic]


def test_groups(wire: Wire) -> None:
    request = DescribeGroupsRequest(groups=["a", "b"] * OFTEN)
    response = wire.ask(request, 5, DescribeGroupsResponse)
    assert [group.group_id for group in response.groups] == ["a", "b"]


def test_settings(wire: Wire, topic: str) -> None:
    resource = DescribeConfigsResource(
        resource_type=2, resource_name=topic, configuration_keys=None
    )
    request = DescribeConfigsRequest(resources=[resource] * OFTEN)
    response = wire.ask(request, 4, DescribeConfigsResponse)
    assert [result.resource_name for result in response.results] == [topic]


def test_positions(wire: Wire, topic: str) -> None:
    wire.metadata("__consumer_offsets", create=True)
    topics = [OffsetFetchRequestTopics(name=topic, partition_indexes=[0, 1] * OFTEN)]
    groups = [OffsetFetchRequestGroup(group_id="a", topics=topics)] * OFTEN
    response = wire.ask(OffsetFetchRequest(groups=groups), 8, OffsetFetchResponse)
    (group,) = response.groups
    assert [part.partition_index for part in group.topics[0].partitions] == [0, 1]
    old = OffsetFetchRequest(
        group_id="a", topics=[OffsetFetchRequestTopic(name=topic, partition_indexes=[1] * OFTEN)]
    )
    (found,) = wire.ask(old, 5, OffsetFetchResponse).topics
    assert len(found.partitions) == 1
