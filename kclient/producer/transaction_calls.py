"""Calls of a producer that begin and end transactions, in steps."""

from collections.abc import Callable, Mapping

from kclient.client.network_client import NetworkClient
from kclient.common.arguments import check_timeout
from kclient.common.config_def import describe
from kclient.common.errors import InvalidArgumentError, InvalidTypeError, KafkaTimeoutError
from kclient.common.offsets import check_offsets
from kclient.common.runtime import Clock
from kclient.common.types import ConsumerGroupMetadata, OffsetAndMetadata, TopicPartition
from kclient.common.waiting import ConditionWait, Steps
from kclient.producer.callback_runner import CallbackRunner
from kclient.producer.transaction_manager import TransactionalCall, TransactionManager

TransactionOffsets = Mapping[TopicPartition, OffsetAndMetadata | int]
"""Next offset to read of each partition."""


class TransactionCalls:
    """Starts calls in the transaction manager, and waits until the sender has completed them."""

    def __init__(
        self,
        manager: TransactionManager,
        client: NetworkClient,
        runner: CallbackRunner,
        clock: Clock,
        max_block_ms: float,
        wake_sender: Callable[[], None],
    ) -> None:
        """Create the calls.

        Args:
            manager: State of the producer.
            client: Has the error that keeps the brokers from being reached.
            runner: Has the sender's task, which a waiting thread runs.
            clock: Clock of the deadlines.
            max_block_ms: ``max.block.ms``.
            wake_sender: Lets the sender see the new state.
        """
        self._manager = manager
        self._client = client
        self._runner = runner
        self._clock = clock
        self._max_block_ms = max_block_ms
        self._wake_sender = wake_sender

    def run(self, name: str, timeout: float | None) -> Steps[None]:
        """Run init_transactions, commit_transaction or abort_transaction."""
        timeout_ms = check_timeout(timeout, default_ms=self._max_block_ms)
        self._runner.check_may_wait(f"{name}()")
        yield from self._outcome(self._manager.start(name), timeout_ms)

    def begin(self) -> None:
        """Begin a transaction; see `Producer.begin_transaction`."""
        self._manager.begin()

    def check_sending(self, call: str) -> None:
        """Check that records may be sent; see `TransactionManager.check_sending`."""
        self._manager.check_sending(call)

    def send_offsets(
        self, offsets: TransactionOffsets, group_metadata: object, timeout: float | None
    ) -> Steps[None]:
        """Send offsets; see `Producer.send_offsets_to_transaction`."""
        timeout_ms = check_timeout(timeout, default_ms=self._max_block_ms)
        if not isinstance(offsets, Mapping):
            raise InvalidTypeError(
                f"offsets: got {describe(offsets)}, expected a dict of TopicPartition to "
                "OffsetAndMetadata or int"
            )
        checked = check_offsets(offsets)
        group = _check_group(group_metadata)
        self._runner.check_may_wait("send_offsets_to_transaction()")
        if not checked:
            self._manager.check_sending("send_offsets_to_transaction")
            return
        yield from self._outcome(self._manager.send_offsets(checked, group), timeout_ms)

    def _outcome(self, call: TransactionalCall, timeout_ms: float) -> Steps[None]:
        """Wait until a call has ended, and raise its error."""
        until_ms = self._clock.monotonic_ms() + timeout_ms
        self._wake_sender()
        while not call.is_done and self._clock.monotonic_ms() < until_ms:
            yield ConditionWait(
                self._manager.changed, call.has_ended, until_ms, self._runner.sender
            )
            self._runner.check_not_forked(f"{call.name}()")
        if not call.is_done:
            cause = self._client.bootstrap_error()
            last = "" if cause is None else f"; the last error was: {cause}"
            error = KafkaTimeoutError(
                f"{call.name}: no outcome within {timeout_ms:.0f} ms; it continues, call "
                f"{call.name}() again{last}"
            )
            error.__cause__ = cause
            raise error
        failed = self._manager.take_outcome(call)
        if failed is not None:
            raise failed


def _check_group(group: object) -> ConsumerGroupMetadata:
    """Return the membership of a consumer.

    Raises:
        InvalidTypeError: It is not a ConsumerGroupMetadata.
        InvalidArgumentError: It has no group, or a generation without member id.
    """
    if not isinstance(group, ConsumerGroupMetadata):
        raise InvalidTypeError(
            f"group_metadata: got {describe(group)}, expected consumer.group_metadata()"
        )
    if not group.group_id:
        raise InvalidArgumentError(
            "group_metadata: got an empty group_id, expected consumer.group_metadata() of a "
            "consumer with a group_id"
        )
    if group.generation_id > 0 and not group.member_id:
        raise InvalidArgumentError(
            f"group_metadata: got generation_id={group.generation_id} without member_id, expected "
            "consumer.group_metadata()"
        )
    return group
