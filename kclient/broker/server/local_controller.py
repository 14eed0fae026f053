"""Requests of this broker to the controller of its node."""

import logging
from collections.abc import Callable, Sequence
from math import inf
from typing import Any, TypeVar

from kclient.broker.controller.quorum_controller import QuorumController
from kclient.broker.controller.topic_control import (
    DeletionPlan,
    PartitionsPlan,
    PartitionsRequest,
    TopicPlan,
    TopicRequest,
)
from kclient.broker.server.metadata_cache import MetadataCache
from kclient.broker.server.raft_manager import RaftManager
from kclient.common.errors import KafkaError
from kclient.common.runtime import Clock

_log = logging.getLogger(__name__)

OutcomeT = TypeVar("OutcomeT")

_IMAGE_WAIT_MS = 1000.0
"""Time after the commit for which a change without a deadline waits for this broker's image."""


class LocalController:
    """Changes of the cluster metadata, made on the thread of the quorum.

    The outcome of a change for a client is reported when this broker's image has the change, so
    that a created topic can be used at once. To open the partitions of a large topic takes seconds.
    The change is committed before, so that the outcome is reported without the image at the
    deadline of the request, or 1 s after the commit if there is none.
    """

    def __init__(self, raft: RaftManager, metadata: MetadataCache, clock: Clock) -> None:
        self._raft = raft
        self._metadata = metadata
        self._clock = clock

    def send(self, request: object, on_done: Callable[[Any], None]) -> None:
        """Send a request of `QuorumController.handle`; `on_done` gets response or `KafkaError`."""
        self._raft.submit(
            lambda controller: controller.handle(request, lambda each: _report(on_done, each))
        )

    def change(self, request: object, on_done: Callable[[Any], None]) -> None:
        """Send a request as `send` does; `on_done` is called when this broker's image has it."""
        self._change(lambda controller, done: controller.handle(request, done), on_done, inf)

    def create_topics(
        self,
        requests: Sequence[TopicRequest],
        on_done: Callable[[list[TopicPlan | KafkaError]], None],
        *,
        validate_only: bool = False,
        deadline_ms: float = inf,
    ) -> None:
        """Create topics; `on_done` gets the plan of each, or its error."""
        self._change(
            lambda controller, done: controller.create_topics(
                requests, done, validate_only=validate_only
            ),
            on_done,
            deadline_ms,
        )

    def create_partitions(
        self,
        requests: Sequence[PartitionsRequest],
        on_done: Callable[[list[PartitionsPlan | KafkaError]], None],
        *,
        validate_only: bool = False,
        deadline_ms: float = inf,
    ) -> None:
        """Add partitions to topics; `on_done` gets the plan of each topic, or its error."""
        self._change(
            lambda controller, done: controller.create_partitions(
                requests, done, validate_only=validate_only
            ),
            on_done,
            deadline_ms,
        )

    def delete_topics(
        self,
        named: Sequence[tuple[str | None, bytes]],
        on_done: Callable[[list[DeletionPlan | KafkaError]], None],
        *,
        deadline_ms: float = inf,
    ) -> None:
        """Delete the topics of names or, where the name is None, of ids."""
        self._change(
            lambda controller, done: controller.delete_topics(named, done), on_done, deadline_ms
        )

    def _change(
        self,
        make: Callable[[QuorumController, Callable[[OutcomeT], None]], None],
        on_done: Callable[[OutcomeT], None],
        deadline_ms: float,
    ) -> None:
        def on_committed(outcome: OutcomeT) -> None:
            offset = self._raft.controller.image.offset
            until_ms = deadline_ms
            if until_ms == inf:
                until_ms = self._clock.monotonic_ms() + _IMAGE_WAIT_MS
            self._metadata.await_offset(offset, until_ms, lambda: on_done(outcome))

        self._raft.submit(lambda controller: make(controller, on_committed))


def _report(on_done: Callable[[OutcomeT], None], outcome: OutcomeT) -> None:
    """Report an outcome; a defect of one request must not end the threads of the metadata."""
    try:
        on_done(outcome)
    except Exception:  # noqa: BLE001 (any defect of the handler)
        _log.exception("the response to a change of the metadata could not be sent")
