"""Calls for subscription and assignment: subscribe, assign, pause."""

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
    """Reads and sets subscription and assignment."""

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
        """Subscribe to topics as a member of the group, which assigns the partitions.

        The subscription replaces an earlier one. The callbacks run inside `poll`.

        Args:
            topics: Topic names; a str is one topic, an empty list unsubscribes.
            pattern: Instead of `topics`: a Python regular expression that matches whole topic
                names, including topics created later.
            on_assigned: Called with the new partitions.
            on_revoked: Called with the partitions about to be revoked; commit here.
            on_lost: Called instead of `on_revoked` if they are lost already.

        Raises:
            IllegalStateError: There is no ``group_id``, or `assign` is in use.
            InvalidArgumentError: Both or neither of `topics` and `pattern`, or an invalid name.
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
            parts.loop.service_at_next_poll()

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Assign exactly these partitions, without group management; an empty list unsubscribes.

        Raises:
            IllegalStateError: `subscribe` is in use.
            InvalidTypeError: It is not a list of TopicPartition.
            InvalidArgumentError: A topic name or partition number is invalid.
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
            parts.loop.service_at_next_poll()

    def unsubscribe(self) -> None:
        """Remove subscription and assignment, and leave the group.

        `on_revoked` is called with the assigned partitions.
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
                parts.loop.service_at_next_poll()

    def assignment(self) -> set[TopicPartition]:
        """Return the assigned partitions; may be called from any thread."""
        return set(self._look().subscriptions.assigned)

    def subscription(self) -> set[str]:
        """Return the subscribed topics; for a pattern, those that match now.

        May be called from any thread.
        """
        subscriptions = self._look().subscriptions
        return set(subscriptions.topics) if subscriptions.is_group_managed() else set()

    def topic_id(self, topic: str) -> str | None:
        """Return the id of a topic from the cached metadata; a recreated topic has another id.

        None if the topic is not in the metadata, or the brokers do not support topic ids.

        Args:
            topic: Name of the topic.

        Raises:
            InvalidArgumentError: The topic name is invalid.
        """
        checked = check_topic_name(topic)
        found = self._look().metadata.cluster().topic_id(checked)
        return None if found is None else uuid_to_text(found)

    def pause(self, *partitions: TopicPartition) -> None:
        """Return no records of these partitions until `resume`; buffered records are kept.

        A rebalance ends the pause.

        Raises:
            IllegalStateError: A partition is not assigned.
        """
        self._set_paused(check_each("pause", partitions), paused=True)

    def resume(self, *partitions: TopicPartition) -> None:
        """Return records of these partitions again.

        Raises:
            IllegalStateError: A partition is not assigned.
        """
        self._set_paused(check_each("resume", partitions), paused=False)

    def paused(self) -> set[TopicPartition]:
        """Return the paused partitions; may be called from any thread."""
        assigned = self._look().subscriptions.assigned
        return {partition for partition, state in assigned.items() if state.paused}

    # --- inside

    def _set_paused(self, partitions: list[TopicPartition], *, paused: bool) -> None:
        with self._call() as parts:
            states = [parts.subscriptions.state(partition) for partition in partitions]
            for state in states:
                state.paused = paused
            parts.loop.service_at_next_poll()

    def _commit_what_was_read(self, parts: ConsumerParts) -> None:
        """Queue a last automatic commit, ahead of later requests."""
        if parts.coordinator is not None and parts.coordinator.auto_commits:
            parts.coordinator.commit_async(parts.subscriptions.all_consumed(), None)

    def _leave_group(self, parts: ConsumerParts, reason: str) -> None:
        if parts.coordinator is not None and parts.subscriptions.is_group_managed():
            try:
                parts.coordinator.report_given_up()
            finally:
                parts.coordinator.leave(reason)
