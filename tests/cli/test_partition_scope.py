"""Partitions on the command line."""

import argparse

import pytest

from kclient.cli.partition_scope import Scope, partitions_of, scope
from kclient.common.types import TopicPartition
from tests.support.clients.clients import Clients


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("orders", Scope("orders", None)),
        ("orders:0", Scope("orders", (0,))),
        ("a.b_c-d:2,0,2", Scope("a.b_c-d", (2, 0))),
    ],
)
def test_topic_with_and_without_partitions(text: str, expected: Scope) -> None:
    assert scope(text) == expected


@pytest.mark.parametrize(
    "text", ["", ":0", "a:", "a:x", "a:-1", "a:0,", "a b", "a:0:1", "a:" + "9" * 12]
)
def test_other_text_is_refused(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="expected TOPIC or TOPIC:P,P"):
        scope(text)


def test_whole_topics_are_described(shared_clients: Clients) -> None:
    first, second = sorted((shared_clients.topic(2), shared_clients.topic(3)))
    counts = {
        name: len(d.partitions)
        for name, d in shared_clients.admin().describe_topics([first, second]).items()
    }
    wanted = [scope(second), scope(f"{first}:1"), scope(f"{first}:1,0")]
    assert partitions_of(shared_clients.admin(), wanted) == [
        TopicPartition(first, 0),
        TopicPartition(first, 1),
        *(TopicPartition(second, each) for each in range(counts[second])),
    ]
