"""Encoding of subscriptions and assignments, compared with other implementations."""

import struct
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.coordinator.assignors.range import RangePartitionAssignor

from kclient.common.broker_errors import UnsupportedVersionError
from kclient.common.errors import ProtocolError
from kclient.common.types import TopicPartition
from kclient.consumer.assignors import Assignment, MemberSubscription
from kclient.consumer.classic.consumer_protocol import (
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)

P = TopicPartition
# Written by hand from the layout: version, topics, user data, owned partitions, generation, rack.
V3 = (
    b"\x00\x03\x00\x00\x00\x02\x00\x01a\x00\x01b\x00\x00\x00\x02hi"
    b"\x00\x00\x00\x01\x00\x01a\x00\x00\x00\x02\x00\x00\x00\x00\x00\x00\x00\x04"
    b"\x00\x00\x00\x07\x00\x02r1"
)
SUBSCRIPTION = MemberSubscription(
    ("a", "b"), b"hi", (P("a", 0), P("a", 4)), generation_id=7, rack_id="r1"
)


def test_subscription_is_encoded_in_latest_version() -> None:
    assert encode_subscription(SUBSCRIPTION) == V3
    assert decode_subscription(V3, "i") == SUBSCRIPTION._replace(group_instance_id="i")


@pytest.mark.parametrize(
    ("version", "data"),
    [(0, V3[2:20]), (1, V3[2:43]), (2, V3[2:47]), (3, V3[2:]), (9, V3[2:] + b"of the future")],
)
def test_subscriptions_of_all_versions_are_decoded(version: int, data: bytes) -> None:
    read = decode_subscription(struct.pack(">h", version) + data, None)
    assert (read.topics, read.user_data) == (("a", "b"), b"hi")
    assert read.owned_partitions == (SUBSCRIPTION.owned_partitions if version >= 1 else ())
    assert read.generation_id == (7 if version >= 2 else -1)
    assert read.rack_id == ("r1" if version >= 3 else None)


def test_subscription_of_kafka_python_is_decoded() -> None:
    data = RangePartitionAssignor.metadata({"orders", "extra"}).encode()
    assert set(decode_subscription(data, None).topics) == {"orders", "extra"}


names = st.text("abc.-_", min_size=1, max_size=5)
partitions = st.lists(st.builds(P, names, st.integers(0, 99)), unique=True).map(
    lambda given: tuple(sorted(given))
)


@given(st.builds(Assignment, partitions, st.none() | st.binary(max_size=9)))
def test_assignment_round_trip(assignment: Assignment) -> None:
    assert decode_assignment(encode_assignment(assignment)) == assignment


@given(
    st.builds(
        MemberSubscription,
        st.lists(names, unique=True).map(lambda given: tuple(sorted(given))),
        st.none() | st.binary(max_size=9),
        partitions,
        st.integers(-1, 99),
        st.none(),
        st.none() | names,
    )
)
def test_subscription_round_trip(subscription: MemberSubscription) -> None:
    assert decode_subscription(encode_subscription(subscription), None) == subscription


def test_empty_bytes_are_an_empty_assignment() -> None:
    assert decode_assignment(b"") == Assignment(())


@given(st.binary(max_size=60))
def test_hostile_bytes_are_refused(data: bytes) -> None:
    for read in (lambda: decode_assignment(data), lambda: decode_subscription(data, None)):
        with suppress(ProtocolError, UnsupportedVersionError):
            read()
