"""Interface between a consumer and the group protocol of its membership.

Fetching, positions and commits use it only. `classic` implements it for the classic group protocol;
another group protocol is another implementation, chosen in `group`.
"""

from typing import TYPE_CHECKING, NamedTuple, Protocol

from kclient.common.errors import KafkaError
from kclient.common.types import ConsumerGroupMetadata
from kclient.common.waiting import Steps
from kclient.consumer.request_future import RequestFuture

if TYPE_CHECKING:
    from kclient.consumer.reconciliation import Reconciliation


class MemberEpoch(NamedTuple):
    """Identity under which a member commits.

    Attributes:
        member_id: Id of the member, empty outside the group.
        epoch: Epoch of the member, -1 outside the group; the generation in the classic protocol.
    """

    member_id: str = ""
    epoch: int = -1


NO_EPOCH = MemberEpoch()


class Membership(Protocol):
    """Membership of a consumer in its group, in steps that wait for no network.

    The application's `poll` runs `step`. The heartbeat task, and calls other than `poll` that
    wait, call `background_step`, which runs no callbacks and changes no assignment.
    """

    def step(self, reconciliation: "Reconciliation", now_ms: float) -> Steps[float]:
        """Run everything that is due, including callbacks; return the time until the next step.

        Args:
            reconciliation: Changes the assigned partitions.
            now_ms: Current time.

        Raises:
            KafkaError: An error for the application, for example FencedInstanceIdError.
        """

    def background_step(self, now_ms: float) -> float:
        """Send heartbeats, or leave the group if the application does not poll.

        Errors are kept for the next `step`.

        Returns:
            Time until the next step.
        """

    def awaits_response(self) -> bool:
        """Return whether a heartbeat is in flight."""

    def holds_back(self) -> bool:
        """Return whether records must not be returned, since partitions may be revoked."""

    def subscription_changed(self, metadata_version: int) -> None:
        """Handle a new subscription.

        Args:
            metadata_version: Version of the metadata after which the topics are known.
        """

    def owns_partitions(self) -> bool:
        """Return whether the assigned partitions belong to this member.

        If not, the group has removed it: they are lost, and may belong to other members.
        """

    def leave(self, reason: str) -> RequestFuture[None]:
        """Leave the group; the future completes with the response, or now without a request."""

    def metadata(self) -> ConsumerGroupMetadata:
        """Return the group metadata for a transactional producer."""

    # --- commits

    def is_stable(self) -> bool:
        """Return whether the member has joined and has its assignment."""

    def commit_epoch(self) -> MemberEpoch:
        """Return the identity for a commit.

        Raises:
            RebalanceInProgressError: The group is rebalancing.
            CommitFailedError: The consumer is not a member of the group now.
        """

    def commit_failed(self, error: KafkaError, sent: MemberEpoch) -> KafkaError:
        """Update the member after a failed commit; return the error for the caller.

        Args:
            error: Error in the response.
            sent: Identity in the request.
        """
