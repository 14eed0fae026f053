"""Planted bugs of transactions, in clients and broker."""

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

from kclient.broker.coordinator.group.offsets import OffsetMetadataManager
from kclient.broker.coordinator.transaction import add_partitions
from kclient.broker.coordinator.transaction.transaction_shard import TransactionShard
from kclient.broker.log.local_log import LocalLog
from kclient.broker.log.log_state import LogState
from kclient.broker.log.producer_state_entry import TRANSACTION_V2, ProducerAppendInfo
from kclient.broker.server.transaction_verification import TransactionVerification
from kclient.common.errors import KafkaTimeoutError
from kclient.common.types import ConsumerGroupMetadata
from kclient.common.waiting import Steps
from kclient.consumer.completed_fetch import CompletedFetch
from kclient.consumer.consumer_core import ConsumerCore
from kclient.producer import transactional_requests, txn_request_handlers
from kclient.producer.sequence_manager import FATAL, SequenceManager
from kclient.producer.transaction_calls import TransactionCalls
from kclient.producer.transaction_manager import TransactionalCall, TransactionManager
from kclient.producer.transaction_state import State
from kclient.record import NO_PRODUCER, NO_PRODUCER_ID, ProducerIdAndEpoch
from kclient.transactions.loop_core import LoopCore
from tests.simulation.planted_bug import PlantedBug, Replace
from tests.simulation.scenario import TRANSACTIONS

# --- clients


def _end_early(replace: Replace) -> None:
    def next_handler(*given: Any, is_incomplete: bool) -> Any:
        return txn_request_handlers.next_handler(*given, is_incomplete=False)

    replace(transactional_requests, "next_handler", next_handler)
    replace(TransactionManager, "may_end", lambda _: True)


def _ignore_failed_sends(replace: Replace) -> None:
    def failed(self: TransactionManager, batch: Any, error: Any, *, sequence_unused: bool) -> None:
        if isinstance(error, FATAL):
            self.fail(error)
        elif batch.has_sequence and batch.topic_partition in self._partitions:
            self._partitions[batch.topic_partition].remove(batch)

    replace(TransactionManager, "failed", failed)


def _bump_locally(replace: Replace) -> None:
    def failed(self: TransactionManager, batch: Any, error: Any, *, sequence_unused: bool) -> None:
        self.producer = ProducerIdAndEpoch(self.producer.producer_id, self.producer.epoch + 1)
        self._partitions.clear()
        self.fail_transaction(error)

    replace(TransactionManager, "failed", failed)


def _forget_commits(replace: Replace) -> None:
    wait = TransactionCalls._outcome

    def outcome(self: TransactionCalls, call: TransactionalCall, timeout_ms: float) -> Steps[None]:
        try:
            yield from wait(self, call, timeout_ms)
        except KafkaTimeoutError:
            manager = self._manager
            if call.name != "commit_transaction" or manager.state is not State.COMMITTING:
                raise
            with manager.changed:
                manager._call = None
                manager._move_to(State.READY)

    replace(TransactionCalls, "_outcome", outcome)


def _keep_epoch(replace: Replace) -> None:
    end = TransactionManager.ended
    replace(TransactionManager, "ended", lambda self, _producer: end(self, NO_PRODUCER))


def _count_late(replace: Replace) -> None:
    complete = TransactionManager.completed

    def next_batch(self: TransactionManager, queued: Any, leader_id: int) -> Any:
        return SequenceManager.next_batch(self, queued, leader_id) if self.sends else None

    def completed(self: TransactionManager, batch: Any, base_offset: int) -> None:
        complete(self, batch, base_offset)
        self._added.add(batch.topic_partition)

    replace(TransactionManager, "request_next_epoch", lambda _: None)
    replace(TransactionManager, "next_batch", next_batch)
    replace(TransactionManager, "completed", completed)


def _stay_after_abort(replace: Replace) -> None:
    replace(LoopCore, "_rewind", lambda _: iter(()))


def _omit_membership(replace: Replace) -> None:
    metadata = ConsumerCore.group_metadata

    def group_metadata(self: ConsumerCore) -> ConsumerGroupMetadata:
        return ConsumerGroupMetadata(metadata(self).group_id)

    replace(ConsumerCore, "group_metadata", group_metadata)


def _stop_at_markers(replace: Replace) -> None:
    take = CompletedFetch.take

    def take_records(self: CompletedFetch, max_records: int) -> Any:
        before = self.next_fetch_offset
        taken = take(self, max_records)
        self.next_fetch_offset = taken[-1].offset + 1 if taken else before
        return taken

    replace(CompletedFetch, "take", take_records)


# --- broker


def _forget_decisions(replace: Replace) -> None:
    replace(TransactionShard, "on_loaded", lambda _: None)


def _never_time_out(replace: Replace) -> None:
    replace(TransactionShard, "timed_out", lambda _: [])


def _append_unverified(replace: Replace) -> None:
    complete = TransactionVerification.complete

    def verify_and_ignore(self: TransactionVerification, started: Any, on_verified: Any) -> None:
        complete(self, started, lambda guards, _: on_verified(guards, {}))

    replace(TransactionVerification, "complete", verify_and_ignore)
    replace(ProducerAppendInfo, "_check_verification", lambda *_: None)


def _refuse_repeated_markers(replace: Replace) -> None:
    def check(self: ProducerAppendInfo, batch: Any) -> None:
        is_version_2 = self._transaction_version >= TRANSACTION_V2
        self._require_epoch(batch, self.entry.producer_epoch + is_version_2)

    replace(ProducerAppendInfo, "_check_marker_epoch", check)


def _add_for_any_epoch(replace: Replace) -> None:
    replace(add_partitions, "check_producer", lambda *_, **__: None)


def _read_open_transactions(replace: Replace) -> None:
    replace(LogState, "last_stable_offset", lambda self: self.high_watermark)


def _list_one_segment(replace: Replace) -> None:
    def collect(self: LocalLog, info: Any) -> Any:
        segment = self.segments.floor(info.start_offset)
        found: Iterable[Any] = () if segment is None else segment.transactions.aborted_txns()
        return [txn for txn in found if txn.last_offset >= info.start_offset]

    replace(LocalLog, "collect_aborted_transactions", collect)


def _apply_at_once(replace: Replace) -> None:
    replay = OffsetMetadataManager.replay

    def apply(
        self: OffsetMetadataManager, key: Any, value: Any, record_offset: int, _producer_id: int
    ) -> None:
        replay(self, key, value, record_offset, NO_PRODUCER_ID)

    replace(OffsetMetadataManager, "replay", apply)


def _apply_aborted(replace: Replace) -> None:
    end = OffsetMetadataManager.end_transaction

    def apply(self: OffsetMetadataManager, producer_id: int, *, committed: bool) -> Any:
        return end(self, producer_id, committed=True)

    replace(OffsetMetadataManager, "end_transaction", apply)


def _return_unstable(replace: Replace) -> None:
    replace(OffsetMetadataManager, "unstable_partitions", lambda *_: set())


_bug = partial(PlantedBug, load=TRANSACTIONS)

TRANSACTION_BUGS: Mapping[str, PlantedBug] = {
    "early-end": _bug(
        "the end is requested before all batches have responses", _end_early, "crash"
    ),
    "bold-commit": _bug(
        "a commit ignores sends that failed", _ignore_failed_sends, "lost-transaction"
    ),
    "local-epoch": _bug(
        "a failed batch raises the epoch inside the transaction", _bump_locally, "false-fence"
    ),
    "forgotten-commit": _bug(
        "after a commit without outcome the next transaction begins", _forget_commits, "torn"
    ),
    "kept-epoch": _bug(
        "the epoch of the response to an end is ignored", _keep_epoch, "false-fence"
    ),
    "late-partition": _bug(
        "a partition counts as part of the transaction after its first response",
        _count_late,
        "torn",
    ),
    "no-rewind": _bug(
        "the loop does not return to the committed offsets", _stay_after_abort, "exactly-once"
    ),
    "no-membership": _bug(
        "offsets are sent with the group metadata of before the first poll",
        _omit_membership,
        "exactly-once",
    ),
    "marker-stop": _bug("markers do not move the position", _stop_at_markers, "exactly-once"),
    "forgotten-decision": _bug(
        "a started coordinator does not complete decided transactions",
        _forget_decisions,
        "finish",
    ),
    "no-timeout": _bug("transactions do not time out", _never_time_out, "open-lso"),
    "unverified": _bug(
        "records are appended without a verified transaction", _append_unverified, "open-lso"
    ),
    "refused-marker": _bug("a repeated marker is refused", _refuse_repeated_markers, "finish"),
    "any-epoch": _bug(
        "the coordinator adds partitions for a fenced producer", _add_for_any_epoch, "exactly-once"
    ),
    "open-read": _bug(
        "the last stable offset is the high watermark", _read_open_transactions, "aborted-read"
    ),
    "one-segment": _bug(
        "a fetch lists only the aborted transactions of its first segment",
        _list_one_segment,
        "aborted-read",
    ),
    "visible-offsets": _bug(
        "offsets of open transactions are committed", _apply_at_once, "exactly-once"
    ),
    "aborted-offsets": _bug("an abort commits its offsets", _apply_aborted, "exactly-once"),
    "unstable-offsets": _bug(
        "offsets are returned although a transaction may change them",
        _return_unstable,
        "exactly-once",
    ),
}
"""Planted bugs by name."""
