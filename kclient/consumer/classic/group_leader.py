"""Client-side assignment (Kafka: ConsumerCoordinator.metadata, onLeaderElected)."""

from collections.abc import Mapping, Sequence

from kclient.client.client_metadata import ConsumerMetadata
from kclient.common.broker_errors import InconsistentGroupProtocolError
from kclient.common.errors import KafkaError
from kclient.common.log_context import NO_LOG_CONTEXT, LogContext
from kclient.common.types import TopicPartition
from kclient.consumer.assignors import (
    Assignment,
    MemberSubscription,
    PartitionAssignor,
)
from kclient.consumer.classic.consumer_protocol import (
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from kclient.consumer.consumer_lock import RunUserCode
from kclient.consumer.missing_partitions import shortened
from kclient.consumer.subscription_state import SubscriptionState
from kclient.protocol.messages.group_membership import (
    JoinGroupRequestProtocol,
    JoinGroupResponseMember,
)


class GroupLeader:
    """Calls the assignors and detects changes that require a rebalance.

    Every member sends a subscription for each of its assignors when it joins. The leader runs the
    assignor that the group has chosen, and each member passes its assignment to that assignor.

    The leader requests metadata of the topics of all members: if the number of partitions of one
    changes, the group must rebalance.
    """

    def __init__(
        self,
        assignors: Sequence[PartitionAssignor],
        subscriptions: SubscriptionState,
        metadata: ConsumerMetadata,
        run_callback: RunUserCode,
        log_context: LogContext = NO_LOG_CONTEXT,
    ) -> None:
        self._log = log_context.logger(__name__)
        self._assignors = {assignor.name: assignor for assignor in assignors}
        self._subscriptions = subscriptions
        self._metadata = metadata
        self._run_callback = run_callback
        self._assigned_counts: dict[str, int] | None = None
        self._joined_topics: frozenset[str] = frozenset()

    def group_protocols(
        self, generation_id: int, rack_id: str | None
    ) -> list[JoinGroupRequestProtocol]:
        """Return the assignors of this member, each with its encoded subscription."""
        topics = self._joined_topics = self._subscriptions.topics
        # If this member becomes the leader again, it watches topics again.
        self.step_down()
        return [
            JoinGroupRequestProtocol(
                name=name,
                metadata=encode_subscription(
                    MemberSubscription(
                        tuple(topics),
                        self._user_data(assignor, topics),
                        tuple(self._subscriptions.assigned),
                        generation_id,
                        rack_id=rack_id,
                    )
                ),
            )
            for name, assignor in self._assignors.items()
        ]

    def topics_changed(self) -> bool:
        """Return whether the subscription has changed since the last join."""
        return self._joined_topics != self._subscriptions.topics

    def on_assignment(
        self, assignment: Assignment, protocol_name: str | None, generation_id: int
    ) -> None:
        """Pass the assignment of this member to the assignor."""
        assignor = self.assignor(protocol_name)
        self._run_callback(lambda: assignor.on_assignment(assignment, generation_id))

    def assignor(self, name: str | None) -> PartitionAssignor:
        """Return the assignor that the group has chosen.

        Raises:
            InconsistentGroupProtocolError: This member does not support it.
        """
        found = self._assignors.get(name or "")
        if found is None:
            known = ", ".join(map(repr, self._assignors))
            raise InconsistentGroupProtocolError(
                f"assignor of the group: got {name!r}, expected one of {known}"
            )
        return found

    def lead(
        self, protocol_name: str, members: Sequence[JoinGroupResponseMember]
    ) -> dict[str, bytes]:
        """Return the assignment of each member.

        Raises:
            KafkaError: A subscription is invalid, or the assignor raised.
        """
        assignor = self.assignor(protocol_name)
        subscribed = {
            member.member_id: decode_subscription(member.metadata, member.group_instance_id)
            for member in members
        }
        topics = {topic for member in subscribed.values() for topic in member.topics}
        if self._subscriptions.group_subscribe(topics):
            self._metadata.set_topics(self._subscriptions.metadata_topics())
        counts = self._counts()
        # Each member logs missing topics of its own subscription.
        missing = topics - counts.keys() - self._subscriptions.topics
        if missing:
            self._log.warning(
                "Topics that other members subscribe to do not exist: %s",
                shortened(sorted(missing)),
            )
        shares = self._assign(assignor, counts, subscribed)
        self._assigned_counts = counts
        self._warn_of_unasked(shares, topics)
        return {member: encode_assignment(share) for member, share in shares.items()}

    def partition_counts_changed(self) -> bool:
        """Return whether partition counts have changed since the assignment."""
        return self._assigned_counts is not None and self._assigned_counts != self._counts()

    def step_down(self) -> None:
        """Stop watching topics: this member is not the leader any more."""
        self._assigned_counts = None
        self._subscriptions.reset_group_subscription()

    def _user_data(self, assignor: PartitionAssignor, topics: frozenset[str]) -> bytes | None:
        return self._run_callback(lambda: assignor.subscription_user_data(topics))

    def _counts(self) -> dict[str, int]:
        cluster = self._metadata.cluster()
        return {
            topic: count
            for topic in sorted(self._subscriptions.metadata_topics())
            if (count := cluster.partition_count(topic))
        }

    def _assign(
        self,
        assignor: PartitionAssignor,
        counts: Mapping[str, int],
        subscribed: Mapping[str, MemberSubscription],
    ) -> Mapping[str, Assignment]:
        try:
            return self._run_callback(lambda: assignor.assign(counts, subscribed))
        except KafkaError:
            raise
        except Exception as error:
            raise KafkaError(f"assignor {assignor.name!r} failed: {error}") from error

    def _warn_of_unasked(self, shares: Mapping[str, Assignment], topics: set[str]) -> None:
        given: set[TopicPartition] = set()
        for share in shares.values():
            given.update(share.partitions)
        unasked = {partition.topic for partition in given} - topics
        if unasked:
            self._log.warning(
                "The assignor assigned topics that no member subscribes to: %s",
                ", ".join(sorted(unasked)),
            )
