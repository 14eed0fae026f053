"""The consumer's calls about what it reads: subscribe, assign, pause."""

import re
from collections.abc import Iterable
from typing import Never

from kclient.common.errors import IllegalStateError, InvalidArgumentError
from kclient.common.foreign_names import refuse_keywords
from kclient.common.types import TopicPartition, check_topic_name
from kclient.common.uuids import uuid_to_text
from kclient.consumer.arguments import (
    check_each,
    check_partitions,
    check_pattern,
    check_topics,
)
from kclient.consumer.consumer_base import ConsumerBase
from kclient.consumer.consumer_parts import ConsumerParts
from kclient.consumer.foreign_names import SUBSCRIBE
from kclient.consumer.rebalance_listener import PartitionsCallback, RebalanceListener


class ConsumerSubscriptions(ConsumerBase):
    """Says what is to be read."""

    def subscribe(
        self,
        topics: str | Iterable[str] | None = None,
        *,
        pattern: str | re.Pattern[str] | None = None,
        on_assigned: PartitionsCallback | None = None,
        on_revoked: PartitionsCallback | None = None,
        on_lost: PartitionsCallback | None = None,
        **_unknown: Never,
    ) -> None:
        """Read topics as a member of the group, which decides on the partitions.

        The subscription replaces an earlier one. The callbacks run inside `poll`.

        Args:
            topics: Topic names; a str is one topic, an empty list unsubscribes.
            pattern: Instead of `topics`: a Python regular expression that whole topic names must
                match; topics that come to exist later are taken in.
            on_assigned: Called with the partitions gained.
            on_revoked: Called with the partitions about to be given up; commit here.
            on_lost: Called in place of `on_revoked` when they are gone already.

        Raises:
            IllegalStateError: There is no ``group_id``, or `assign` is in use.
            InvalidArgumentError: Both or neither of `topics` and `pattern`, or an illegal name.
            InvalidTypeError: An argument has the wrong type.
        """
        refuse_keywords("Consumer.subscribe", _unknown, SUBSCRIBE)
        if (topics is None) == (pattern is None):
            raise InvalidArgumentError("subscribe: expected either topics or pattern")
        listener = RebalanceListener(on_assigned, on_revoked, on_lost)
        names = check_topics(topics) if topics is not None else []
        compiled = check_pattern(pattern) if pattern is not None else None
        if compiled is None and not names:
            self.unsubscribe()
            return
        with self._call() as parts:
            coordinator = self._coordinator("subscribe")
            if compiled is None:
                parts.subscriptions.subscribe(names, listener)
                version = parts.metadata.set_topics(parts.subscriptions.metadata_topics())
            else:
                parts.subscriptions.subscribe_pattern(compiled, listener)
                parts.metadata.set_topics(())
                version = parts.metadata.set_topic_filter(parts.subscriptions.accepts)
            coordinator.subscribed(version)
            parts.loop.disturb()

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Read exactly these partitions, whatever a group may say; an empty list unsubscribes.

        Raises:
            IllegalStateError: `subscribe` is in use.
            InvalidTypeError: It is no list of TopicPartition.
            InvalidArgumentError: A partition cannot exist.
        """
        wanted = check_partitions(partitions)
        if not wanted:
            self.unsubscribe()
            return
        with self._call() as parts:
            if parts.subscriptions.is_group_managed():
                raise IllegalStateError(
                    f"assign while {parts.subscriptions.kind.value} is in use; "
                    "the two exclude each other: call unsubscribe() first"
                )
            self._commit_what_was_read(parts)
            parts.subscriptions.assign_from_user(wanted)
            parts.buffer.retain(parts.subscriptions.assigned)
            parts.metadata.set_topics(parts.subscriptions.topics)
            parts.loop.disturb()

    def unsubscribe(self) -> None:
        """Give up subscription and assignment, and leave the group.

        `on_revoked` is called with the partitions held.
        """
        with self._call() as parts:
            self._commit_what_was_read(parts)
            try:
                self._leave_group(parts, "unsubscribed")
            finally:
                parts.subscriptions.unsubscribe()
                parts.buffer.clear()
                parts.metadata.set_topic_filter(None)
                parts.metadata.set_topics(())
                parts.loop.disturb()

    def assignment(self) -> set[TopicPartition]:
        """Return the partitions held; may be called in any thread."""
        return set(self._look().subscriptions.assigned)

    def subscription(self) -> set[str]:
        """Return the topics subscribed to; of a pattern, those that match today.

        May be called in any thread.
        """
        subscriptions = self._look().subscriptions
        return set(subscriptions.topics) if subscriptions.is_group_managed() else set()

    def topic_id(self, topic: str) -> str | None:
        """Return the id of a topic as this consumer knows it; one that is made anew has another.

        Nobody is asked: None before the topic was described, and by brokers that tell no ids.

        Args:
            topic: Name of the topic.

        Raises:
            InvalidArgumentError: No topic can have that name.
        """
        checked = check_topic_name(topic)
        found = self._look().metadata.cluster().topic_id(checked)
        return None if found is None else uuid_to_text(found)

    def pause(self, *partitions: TopicPartition) -> None:
        """Hand out no records of these partitions until `resume`; what is buffered is kept.

        A rebalance ends a pause.

        Raises:
            IllegalStateError: A partition is not assigned.
        """
        self._set_paused(check_each("pause", partitions), paused=True)

    def resume(self, *partitions: TopicPartition) -> None:
        """Hand out records of these partitions again.

        Raises:
            IllegalStateError: A partition is not assigned.
        """
        self._set_paused(check_each("resume", partitions), paused=False)

    def paused(self) -> set[TopicPartition]:
        """Return the partitions that are paused; may be called in any thread."""
        assigned = self._look().subscriptions.assigned
        return {partition for partition, state in assigned.items() if state.paused}

    # --- inside

    def _set_paused(self, partitions: list[TopicPartition], *, paused: bool) -> None:
        with self._call() as parts:
            states = [parts.subscriptions.state(partition) for partition in partitions]
            for state in states:
                state.paused = paused
            parts.loop.disturb()

    def _commit_what_was_read(self, parts: ConsumerParts) -> None:
        """Queue a last automatic commit, which goes out before anything that follows."""
        if parts.coordinator is not None and parts.coordinator.auto_commits:
            parts.coordinator.commit_async(parts.subscriptions.all_consumed(), None)

    def _leave_group(self, parts: ConsumerParts, reason: str) -> None:
        if parts.coordinator is not None and parts.subscriptions.is_group_managed():
            try:
                parts.coordinator.report_given_up()
            finally:
                parts.coordinator.leave(reason)
