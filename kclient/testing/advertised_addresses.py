"""Replacement of the addresses that brokers advertise by those of a proxy."""

from collections.abc import Callable, Iterator
from typing import Protocol

from kclient.common.runtime import Address
from kclient.protocol.api_keys import ApiKey
from kclient.protocol.message import Response
from kclient.protocol.messages.describe_cluster import DescribeClusterResponse
from kclient.protocol.messages.fetch import FetchResponse
from kclient.protocol.messages.find_coordinator import FindCoordinatorResponse
from kclient.protocol.messages.metadata import MetadataResponse
from kclient.protocol.messages.produce import ProduceResponse
from kclient.testing.fault_frames import Direction, Frame
from kclient.testing.fault_rule import Delivery
from kclient.testing.fault_script import edit_response

Translate = Callable[[Address], Address]
"""Returns the address of the proxy for an address that a broker advertises."""

_FIRST_WITH_LEADERS = {ApiKey.PRODUCE: 10, ApiKey.FETCH: 16}
_NEVER = 1 << 15
_APIS = frozenset({ApiKey.METADATA, ApiKey.FIND_COORDINATOR, ApiKey.DESCRIBE_CLUSTER})


class _Place(Protocol):
    host: str
    port: int


def rewrite_addresses(delivery: Delivery, translate: Translate) -> None:
    """Replace the brokers' addresses in a response by those of the proxy.

    These are Metadata, FindCoordinator, DescribeCluster, and the new leaders in the responses to
    Produce and Fetch (KIP-951).
    """
    if not _may_name_brokers(delivery.frame):
        return

    def change(response: Response) -> bool:
        changed = False
        for place in _places(response):
            if place.host and place.port > 0:
                place.host, place.port = translate((place.host, place.port))
                changed = True
        return changed

    edited = edit_response(delivery, change)
    if edited is not None:
        delivery.pieces = [edited]


def _may_name_brokers(frame: Frame) -> bool:
    if frame.api is None or frame.direction is not Direction.TO_CLIENT:
        return False
    return frame.api in _APIS or frame.version >= _FIRST_WITH_LEADERS.get(frame.api, _NEVER)


def _places(response: Response) -> Iterator[_Place]:
    if isinstance(response, MetadataResponse | DescribeClusterResponse):
        yield from response.brokers
    elif isinstance(response, FindCoordinatorResponse):
        yield response
        yield from response.coordinators
    elif isinstance(response, ProduceResponse | FetchResponse):
        yield from response.node_endpoints
