"""Bugs planted in clients and broker, one at a time; the simulation must find each.

Each is a small change that a review might miss. `planted` applies it for a ``with`` block.
"""

import math
from contextlib import suppress
from functools import partial
from typing import Any

from kclient.broker.coordinator.group.membership import Membership
from kclient.broker.coordinator.group.rebalance import Rebalancer
from kclient.broker.coordinator.runtime.coordinator_loader import CoordinatorLoader
from kclient.broker.log.file_records import FileRecords
from kclient.broker.log.log_loader import LogLoader
from kclient.broker.log.log_segment import LogSegment
from kclient.broker.log.log_validator import LogValidator
from kclient.broker.log.producer_state_manager import ProducerStateManager
from kclient.broker.replication.partition import Partition
from kclient.client import response_collector
from kclient.client.in_flight_requests import InFlightRequests
from kclient.client.metadata_refresh_timing import MetadataRefreshTiming
from kclient.client.metadata_response_reader import LastSeenEpochs
from kclient.client.metadata_snapshot import MetadataSnapshot
from kclient.common.broker_errors import CorruptRecordError
from kclient.consumer import completed_fetch
from kclient.consumer.commits import AutoCommit
from kclient.consumer.consumer_lock import ConsumerLock
from kclient.consumer.consumer_network_client import ConsumerNetworkClient
from kclient.consumer.fetch_buffer import FetchBuffer
from kclient.consumer.fetch_collector import FetchCollector
from kclient.consumer.poll_loop import PollLoop
from kclient.consumer.reconciliation import Reconciliation
from kclient.consumer.subscription_state import SubscriptionState
from kclient.producer.produce_request_result import ProduceRequestResult
from kclient.producer.record_accumulator import RecordAccumulator
from kclient.producer.sequence_manager import SequenceManager
from kclient.producer.transaction_state import State
from kclient.record import PartitionCursor, RecordBatch
from tests.simulation.planted_bug import PlantedBug, Replace
from tests.simulation.transaction_bugs import TRANSACTION_BUGS


def _renumber_retries(replace: Replace) -> None:
    assign, choose = SequenceManager.assign_sequence, SequenceManager.next_batch

    def oldest(self: SequenceManager, queued: Any, leader_id: int) -> Any:
        entry = self._partitions.get(queued[0].topic_partition)
        may_send = entry is not None and self.state is State.READY and not self._to_rewrite
        return queued[0] if may_send else choose(self, queued, leader_id)

    def reassign_sequence(self: SequenceManager, batch: Any, topic_id: bytes | None) -> None:
        entry = self._partitions.get(batch.topic_partition)
        if batch.has_sequence and entry is not None:
            entry.remove(batch)
            entry.add(batch)
        assign(self, batch, topic_id)

    replace(SequenceManager, "assign_sequence", reassign_sequence)
    replace(SequenceManager, "next_batch", oldest)


def _free_on_retry(replace: Replace) -> None:
    put_back = RecordAccumulator.reenqueue

    def reenqueue(self: RecordAccumulator, batch: Any, now_ms: float) -> None:
        put_back(self, batch, now_ms)
        if batch.buffer is not None:
            self.pool.deallocate(batch.buffer)

    replace(RecordAccumulator, "reenqueue", reenqueue)


class Whatever(int):
    """A number that equals every other."""

    def __ne__(self, other: object) -> bool:
        return False

    __hash__ = int.__hash__


def _complete_latest(replace: Replace) -> None:
    def youngest(self: InFlightRequests, node_id: str) -> Any:
        queue = self._queues.get(node_id)
        return queue[-1] if queue else None

    def take_youngest(self: InFlightRequests, node_id: str) -> Any:
        queue = self._queues.get(node_id)
        if not queue:
            return None
        self._count -= 1
        return queue.pop()

    replace(InFlightRequests, "oldest", youngest)
    replace(InFlightRequests, "complete_next", take_youngest)
    replace(response_collector, "peek_correlation_id", lambda _: Whatever())


def _drop_flush(replace: Replace) -> None:
    replace(LogSegment, "flush_records", lambda _: None)


def _forget_producers(replace: Replace) -> None:
    load = LogLoader.load

    def load_and_forget(self: LogLoader, checkpoint: Any) -> int:
        start = load(self, checkpoint)
        self._producers.entries.clear()
        return start

    replace(LogLoader, "load", load_and_forget)


def _ignore_duplicates(replace: Replace) -> None:
    replace(ProducerStateManager, "find_duplicate", lambda *_: None)
    check = "kclient.broker.log.producer_state_entry.ProducerAppendInfo._check_sequence"
    owner, _, name = check.rpartition(".")
    replace(_named(owner), name, lambda *_: None)


def _named(dotted: str) -> Any:
    module, _, name = dotted.rpartition(".")
    return getattr(__import__(module, fromlist=[name]), name)


def _overstate_high_watermark(replace: Replace) -> None:
    def advance(self: Partition) -> None:
        self.log._state.high_watermark = self.log.log_end_offset + 1

    replace(Partition, "_advance_high_watermark", advance)


def _use_stale_fetch(replace: Replace) -> None:
    def is_ready(self: FetchCollector, fetch: Any) -> bool:
        if not fetch.initialized:
            self._take_over_ends(fetch)
        return not fetch.data.error_code and not fetch.is_exhausted()

    def next_position(self: FetchBuffer, state: Any) -> Any:
        chain = self._chains.get(state.partition)
        return chain[-1].end if chain else state.position

    replace(FetchCollector, "_is_ready", is_ready)
    replace(FetchBuffer, "next_position", next_position)


def _deliver_revoked(replace: Replace) -> None:
    replace(SubscriptionState, "holds", lambda *_: True)
    replace(FetchBuffer, "retain", lambda *_: None)
    replace(Reconciliation, "_remove", lambda *_: None)


def _notify_no_thread(replace: Replace) -> None:
    def release_waiters(self: ProduceRequestResult) -> None:
        self.is_finished = True

    replace(ProduceRequestResult, "_release_waiters", release_waiters)


def _end_twice(replace: Replace) -> None:
    def complete(self: ProduceRequestResult, outcome: Any) -> bool:
        self._set_outcome(outcome)
        deliveries = list(self.deliveries)
        self._runner.run_all(partial(future.report, callback) for _, future, callback in deliveries)
        self._release_waiters()
        return True

    replace(ProduceRequestResult, "_finish", complete)


def _cut_too_much(replace: Replace) -> None:
    recover = LogSegment.recover

    def recover_less(self: LogSegment, visit: Any) -> int:
        cut = recover(self, visit)
        headers = list(self.records.headers())
        if headers:
            self._truncate_at(headers[-1].position, headers[-1].base_offset)
        return cut + bool(headers)

    replace(LogSegment, "recover", recover_less)


def _commit_ahead(replace: Replace) -> None:
    collect = PollLoop._collect
    steps: dict[int, AutoCommit] = {}
    step = AutoCommit.step

    def remember(self: AutoCommit, now_ms: float) -> float:
        steps[id(self._subscriptions)] = self
        return step(self, now_ms)

    def collect_and_commit(self: PollLoop, target: Any) -> Any:
        taken = collect(self, target)
        found = steps.get(id(self._fetcher._subscriptions))
        if taken and found is not None and found.enabled:
            found.commit_now()
        return taken

    replace(AutoCommit, "step", remember)
    replace(PollLoop, "_collect", collect_and_commit)


def _forget_positions(replace: Replace) -> None:
    def read_nothing(loader: CoordinatorLoader, log_end_offset: int) -> None:
        loader.end_offset = log_end_offset

    replace(CoordinatorLoader, "_read", read_nothing)


def _trust_requests(replace: Replace) -> None:
    check = LogValidator._check_envelope

    def check_all_but_checksum(validator: LogValidator, batch: RecordBatch) -> None:
        with suppress(CorruptRecordError):
            check(validator, batch)

    replace(LogValidator, "_check_envelope", check_all_but_checksum)


def _accept_responses(replace: Replace) -> None:
    def unchecked(*given: Any, **options: Any) -> PartitionCursor:
        return PartitionCursor(*given, **{**options, "check_crcs": False})

    replace(completed_fetch, "PartitionCursor", unchecked)


def _trust_disk(replace: Replace) -> None:
    replace(FileRecords, "valid_batch_columns", lambda self, **_: self.header_columns())


def _wait_for_dead_joiners(replace: Replace) -> None:
    delay = Rebalancer._delay_first_generation

    def wait_for_joins(self: Rebalancer, group: Any, remaining_ms: float) -> None:
        if self._config.initial_rebalance_delay_ms:
            delay(self, group, remaining_ms)
        else:
            self._wait_for_joins(group)

    replace(Rebalancer, "_delay_first_generation", wait_for_joins)


def _request_metadata_at_once(replace: Replace) -> None:
    updated = MetadataRefreshTiming.updated

    def update(self: MetadataRefreshTiming, *args: Any, same: bool, **kwargs: Any) -> None:
        updated(self, *args, same=same, **kwargs)
        if not same:
            self._not_before_ms = -math.inf
            self._schedule()

    def describes_same_cluster(self: MetadataSnapshot, other: MetadataSnapshot) -> bool:
        return self == other and not any(each.error_code for each in self.topics.values())

    replace(MetadataRefreshTiming, "updated", update)
    replace(MetadataSnapshot, "describes_same_cluster", describes_same_cluster)


def _forget_topic_ids(replace: Replace) -> None:
    def missing(self: LastSeenEpochs, topic: str) -> None:
        self._topic_ids.pop(topic, None)

    replace(LastSeenEpochs, "missing", missing)


def _take_any_generation(replace: Replace) -> None:
    check = Membership.check_commit

    def check_any(
        self: Membership, group: Any, member_id: str, instance_id: str | None, generation: int
    ) -> None:
        assumed = generation if generation < 0 else group.generation
        check(self, group, member_id, instance_id, assumed)

    replace(Membership, "check_commit", check_any)


def _wait_without_heartbeats(replace: Replace) -> None:
    replace(ConsumerNetworkClient, "in_waits", lambda *_: None)


def _keep_the_lock(replace: Replace) -> None:
    replace(ConsumerLock, "run_released", lambda _, code: code())


BUGS: dict[str, PlantedBug] = {
    "eager-metadata": PlantedBug(
        "a missing topic makes each metadata response count as changed",
        _request_metadata_at_once,
        "request-rate",
    ),
    "lost-topic-id": PlantedBug(
        "a topic that was missing keeps its leader epochs without its id",
        _forget_topic_ids,
        "crash",
        load="retries",
    ),
    "renumbered-retry": PlantedBug(
        "a retried batch gets a new sequence", _renumber_retries, "duplicate", load="retries"
    ),
    "early-reuse": PlantedBug(
        "the buffer of a batch is released to the pool before its retry",
        _free_on_retry,
        "work",
    ),
    "wrong-match": PlantedBug(
        "responses complete the latest request, regardless of the correlation id",
        _complete_latest,
        "crash",
    ),
    "no-flush": PlantedBug("a segment is not flushed before the response", _drop_flush, "work"),
    "amnesia": PlantedBug(
        "a started broker has lost the producer state",
        _forget_producers,
        "duplicate",
        load="retries",
    ),
    "no-dedup": PlantedBug(
        "the broker does not check sequences", _ignore_duplicates, "duplicate", load="retries"
    ),
    "bold-watermark": PlantedBug(
        "the high watermark exceeds the log end offset", _overstate_high_watermark, "work"
    ),
    "stale-fetch": PlantedBug(
        "a fetch for an earlier position moves the position", _use_stale_fetch, "crash"
    ),
    "revoked-read": PlantedBug(
        "records of revoked partitions are returned", _deliver_revoked, "wrong-start"
    ),
    "lost-wakeup": PlantedBug(
        "waiting threads are not notified of a completed batch", _notify_no_thread, "late-call"
    ),
    "two-ends": PlantedBug("a future may complete twice", _end_twice, "outcome", load="overload"),
    "cut-too-much": PlantedBug("recovery truncates the last valid batch", _cut_too_much, "work"),
    "early-commit": PlantedBug(
        "auto-commit covers records that poll has just returned",
        _commit_ahead,
        "early-commit",
        load="overload",
    ),
    "lost-positions": PlantedBug(
        "a started broker does not load committed offsets", _forget_positions, "work"
    ),
    "trusted-requests": PlantedBug(
        "the broker does not check checksums of appended batches",
        _trust_requests,
        "lost-write",
        load="damage",
    ),
    "trusted-responses": PlantedBug(
        "the consumer does not check checksums of fetched batches",
        _accept_responses,
        "poll-skip",
        load="damage",
    ),
    "trusted-recovery": PlantedBug(
        "recovery does not check checksums", _trust_disk, "catch-up", load="torn writes"
    ),
    "dead-joiner": PlantedBug(
        "without a rebalance delay, a new group waits for a client that died before it joined",
        _wait_for_dead_joiners,
        "late-assignment",
    ),
    "any-generation": PlantedBug(
        "the broker accepts commits of an earlier generation",
        _take_any_generation,
        "foreign-commit",
        load="overload",
    ),
    "silent-wait": PlantedBug(
        "no heartbeats are sent while a call other than poll waits",
        _wait_without_heartbeats,
        "lost-membership",
    ),
    "silent-deserializer": PlantedBug(
        "no heartbeats are sent while a call runs application code",
        _keep_the_lock,
        "lost-membership",
    ),
    **TRANSACTION_BUGS,
}
"""All planted bugs by name."""
