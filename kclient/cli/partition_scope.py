"""Partitions on the command line: ``orders`` for all of a topic, ``orders:0,1`` for some."""

import argparse
from collections.abc import Iterable
from typing import NamedTuple

from kclient.admin.admin_client import AdminClient
from kclient.common.errors import InvalidArgumentError
from kclient.common.types import TopicPartition, check_topic_name

FORMS = "TOPIC or TOPIC:P,P"


class Scope(NamedTuple):
    """Partitions of a topic.

    Attributes:
        topic: The topic.
        partitions: Numbers of partitions; None for all.
    """

    topic: str
    partitions: tuple[int, ...] | None


def scope(text: str) -> Scope:
    """Return the partitions that a text names, for `argparse`."""
    topic, colon, numbers = text.partition(":")
    wanted = numbers.split(",") if colon else []
    try:
        check_topic_name(topic)
    except InvalidArgumentError:
        topic = ""
    if not topic or not all(each.isdecimal() and len(each) < 10 for each in wanted):
        raise argparse.ArgumentTypeError(f"got {text!r:.80}, expected {FORMS}, as orders:0,1")
    return Scope(topic, tuple(dict.fromkeys(map(int, wanted))) if colon else None)


def partitions_of(admin: AdminClient, scopes: Iterable[Scope]) -> list[TopicPartition]:
    """Return partitions in their order; those of a whole topic as the cluster describes it.

    Raises:
        UnknownTopicOrPartitionError: There is no such topic.
    """
    given = list(scopes)
    whole = list(dict.fromkeys(each.topic for each in given if each.partitions is None))
    described = admin.describe_topics(whole).raise_for_errors() if whole else {}
    found = {
        TopicPartition(each.topic, number)
        for each in given
        for number in (
            [info.partition for info in described[each.topic].partitions]
            if each.partitions is None
            else each.partitions
        )
    }
    return sorted(found)
