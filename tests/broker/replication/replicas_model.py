"""Three replicas of a partition in one thread, with faults and a controller; and what must hold.

Every message is delayed by chance, and may be lost. Brokers are killed, with or without the loss of
what was not flushed, and started again; leaders are moved. After each action `Truth` checks the
state of all brokers.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from kclient.broker.log.log_config import LogConfig
from kclient.broker.log.log_manager import LogManager, LogManagerSettings
from kclient.broker.log.memory_records import MemoryRecords
from kclient.broker.log.unified_log import UnifiedLog
from kclient.broker.metadata.metadata_delta import MetadataDelta
from kclient.broker.metadata.metadata_image import (
    BrokerRegistration,
    MetadataImage,
    PartitionRegistration,
    TopicImage,
)
from kclient.broker.replication.alter_partition_manager import AlterPartitionManager
from kclient.broker.replication.delayed_requests import AppendResults
from kclient.broker.replication.fetch_params import FetchIsolation, FetchParams, FetchResults
from kclient.broker.replication.partition import Partition
from kclient.broker.replication.replica_fetcher import (
    FetcherSettings,
    OnResponse,
    ReplicaFetcher,
    contiguous,
)
from kclient.broker.replication.replica_fetcher_manager import ReplicaFetcherManager
from kclient.broker.replication.replica_manager import ReplicaManager
from kclient.broker.server.fetch_session import CachedPartition, FetchContext, FetchSessionCache
from kclient.broker.server.handlers.fetch import _topic_responses
from kclient.common.broker_errors import error_for_code
from kclient.common.errors import DisconnectedError, KafkaError
from kclient.common.runtime import Runtime
from kclient.common.system_tasks import SystemTasks
from kclient.common.types import TopicPartition
from kclient.network.system_net import SystemNet
from kclient.protocol.message import Request, Response
from kclient.protocol.messages.broker_to_controller import (
    AlterPartitionRequest,
    AlterPartitionRequestPartitionData,
    AlterPartitionResponse,
    AlterPartitionResponsePartitionData,
    AlterPartitionResponseTopicData,
)
from kclient.protocol.messages.fetch import FetchRequest, FetchResponse
from kclient.protocol.messages.log_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from kclient.record import read_batches
from kclient.testing.virtual.virtual_disk import VirtualDisk
from kclient.testing.virtual.virtual_files import VirtualFiles
from tests.support.disks.log_bench import ManualClock, make_batch

T0 = TopicPartition("t", 0)
TOPIC_ID = bytes(15) + b"\x70"
DATA = Path("/srv/kafka/data")
BROKERS = (1, 2, 3)
MIN_ISR = 2
LAG_MS = 400.0
CONFIG = LogConfig(segment_bytes=1500, index_interval_bytes=200, min_insync_replicas=MIN_ISR)
METADATA_VERSION = 25


class Batch(NamedTuple):
    """Identity of a batch in a log."""

    base_offset: int
    last_offset: int
    epoch: int
    crc: int


def batches_of(log: UnifiedLog) -> list[Batch]:
    """Return the batches of a log."""
    found: list[Batch] = []
    offset = log.log_start_offset
    while offset < log.log_end_offset:
        data = contiguous(log.read(offset, 1 << 20).records)
        for each in read_batches(data):
            found.append(
                Batch(each.base_offset, each.last_offset, each.partition_leader_epoch, each.crc)
            )
            offset = each.next_offset
    return found


class Controller:
    """Registrations of the brokers, and of the partition; validates AlterPartition.

    Attributes:
        partition: Registration of the partition.
        brokers: Registrations of the brokers.
        history: ISR by partition epoch.
        images: All images.
        compares_partition_epoch: False plants a bug.
    """

    def __init__(self) -> None:
        self.brokers = {
            each: BrokerRegistration(each, each, bytes(16), (), None, False) for each in BROKERS
        }
        self.partition = PartitionRegistration(BROKERS, BROKERS, 1, 0, 0)
        self.history: dict[int, tuple[int, ...]] = {0: BROKERS}
        self.images: list[MetadataImage] = []
        self._next_epoch = 10
        self.compares_partition_epoch = True
        self._publish()

    def _publish(self) -> None:
        topic = TopicImage("t", TOPIC_ID, (self.partition,))
        self.images.append(
            MetadataImage(
                offset=len(self.images),
                topics={"t": topic},
                topic_names={TOPIC_ID: "t"},
                brokers=dict(self.brokers),
                configs={},
            )
        )

    def _change(self, isr: Sequence[int], leader: int) -> None:
        before = self.partition
        self.partition = before._replace(
            isr=tuple(isr),
            leader=leader,
            leader_epoch=before.leader_epoch + (leader != before.leader),
            partition_epoch=before.partition_epoch + 1,
        )
        self.history[self.partition.partition_epoch] = self.partition.isr

    def _elect(self, isr: Sequence[int]) -> int:
        if self.partition.leader in isr and self.brokers[self.partition.leader].is_active:
            return self.partition.leader
        return next((each for each in BROKERS if each in isr and self.brokers[each].is_active), -1)

    def fence(self, broker: int) -> None:
        """Fence a broker whose session has ended."""
        if self.brokers[broker].fenced:
            return
        self.brokers[broker] = self.brokers[broker]._replace(fenced=True)
        self._leave(broker)
        self._publish()

    def _leave(self, broker: int) -> None:
        isr = self.partition.isr
        if broker in isr or self.partition.leader == broker:
            rest = tuple(each for each in isr if each != broker) or isr
            self._change(rest, self._elect(rest))

    def register(self, broker: int) -> int:
        """Register a broker that has started; return its epoch."""
        self.fence(broker)
        self._next_epoch += 1
        self.brokers[broker] = self.brokers[broker]._replace(epoch=self._next_epoch)
        self._publish()
        return self._next_epoch

    def unfence(self, broker: int, epoch: int) -> None:
        """Unfence a broker that has read its registration."""
        known = self.brokers[broker]
        if known.epoch == epoch and known.fenced:
            self.brokers[broker] = known._replace(fenced=False)
            if self.partition.leader == -1:
                leader = self._elect(self.partition.isr)
                if leader >= 0:
                    self._change(self.partition.isr, leader)
            self._publish()

    def move_leader(self, broker: int) -> None:
        """Elect a member of the ISR."""
        known = self.partition
        if broker in known.isr and broker != known.leader and self.brokers[broker].is_active:
            self._change(known.isr, broker)
            self._publish()

    def alter(self, request: AlterPartitionRequest) -> AlterPartitionResponse:
        """Validate and apply a change of the ISR."""
        if self.brokers[request.broker_id].epoch != request.broker_epoch:
            return AlterPartitionResponse(error_code=77)
        (topic,) = request.topics
        (part,) = topic.partitions
        code = self._problem(request.broker_id, part)
        result = AlterPartitionResponsePartitionData(partition_index=0, error_code=code)
        if not code:
            isr = [member.broker_id for member in part.new_isr_with_epochs]
            if sorted(isr) != sorted(self.partition.isr):
                self._change(isr, self.partition.leader)
                self._publish()
            now = self.partition
            result.leader_id, result.leader_epoch = now.leader, now.leader_epoch
            result.isr, result.partition_epoch = list(now.isr), now.partition_epoch
        changed = AlterPartitionResponseTopicData(topic_id=topic.topic_id, partitions=[result])
        return AlterPartitionResponse(topics=[changed])

    def _problem(self, sender: int, part: AlterPartitionRequestPartitionData) -> int:
        now = self.partition
        members = part.new_isr_with_epochs
        ids = [member.broker_id for member in members]
        if part.leader_epoch > now.leader_epoch or part.partition_epoch > now.partition_epoch:
            code = 41
        elif part.leader_epoch < now.leader_epoch:
            code = 74
        elif sender != now.leader:
            code = 42
        elif part.partition_epoch < now.partition_epoch and self.compares_partition_epoch:
            code = 95
        elif len(set(ids)) != len(ids) or not set(ids) <= set(now.replicas):
            code = 42
        elif any(
            not self.brokers[each.broker_id].is_active
            or each.broker_epoch not in (-1, self.brokers[each.broker_id].epoch)
            for each in members
        ):
            code = 107
        else:
            code = 0
        return code


class Node:
    """A broker.

    Attributes:
        alive: Whether it runs.
        life: Number of its starts.
        lost_at: Partition epoch from which leaders know that it has lost unflushed data.
    """

    def __init__(self, world: World, node_id: int) -> None:
        self.world = world
        self.id = node_id
        self.disk = VirtualDisk(world.clock)
        self.alive = False
        self.life = 0
        self.epoch = node_id
        self.image_at = 0
        self.lost_at = 0
        self.end_at_death = 0
        self._files = VirtualFiles(self.disk)
        self.start()

    def start(self) -> None:
        """Start the process with the newest image."""
        world = self.world
        self.life += 1
        self.alive = True
        self._files = files = VirtualFiles(self.disk)
        runtime = Runtime(world.clock, world.rng, SystemTasks(), SystemNet(), files)
        settings = LogManagerSettings(high_watermark_checkpoint_interval_ms=200)
        self.logs = LogManager(DATA, runtime, CONFIG, settings)
        self.logs.load()
        self.manager = ReplicaManager(
            self.id, runtime, self.logs, lambda _image, _topic: CONFIG, LAG_MS
        )
        context = self.manager.context
        context.broker_epoch = lambda: self.epoch
        lock = runtime.tasks.condition
        self.alter = AlterPartitionManager(
            self.id, lambda: self.epoch, ToController(self).send, lock(), world.clock.monotonic_ms
        )
        context.alter_partition = self.alter.submit
        self.sessions = FetchSessionCache(100, world.clock, world.rng, lock())
        self.manager.changed = self.sessions.partition_changed
        self.fetchers = ReplicaFetcherManager(self._fetcher, lambda _: None, lock())
        self.manager.hosted.fetchers = self.fetchers
        self.image_at = len(world.controller.images) - 1
        image = world.controller.images[self.image_at]
        self.manager.publish(MetadataDelta.between(MetadataImage(), image), image)

    def _fetcher(self, leader: int, _number: int) -> ReplicaFetcher:
        life = self.life
        settings = FetcherSettings(
            self.id,
            lambda: self.epoch,
            lambda: METADATA_VERSION,
            max_wait_ms=0,
            partition_max_bytes=self.world.rng.choice((80, 300, 5000)),
            backoff_ms=20.0,
        )
        condition = SystemTasks().condition()

        def changed(partition: TopicPartition) -> None:
            if self.life == life:
                self.manager.context.changed(partition)

        clock = self.world.clock
        return ReplicaFetcher(
            settings, ToLeader(self, leader), self.logs, condition, clock.monotonic_ms, changed
        )

    @property
    def partition(self) -> Partition:
        """Its replica."""
        return self.manager.partition(T0)

    def stop(self, *, loses_data: bool) -> None:
        """Kill the process, and cut the power if it loses unflushed data."""
        self.alive = False
        self.end_at_death = self.partition.log.log_end_offset
        self._files.end()
        if loses_data:
            # The controller learns it at once: else it could elect this broker, as the last one.
            self.world.controller.fence(self.id)
            self.lost_at = self.world.controller.partition.partition_epoch
            self.disk.lose_unflushed(self.world.rng)

    def publish_next(self) -> None:
        """Publish up to some later image."""
        images = self.world.controller.images
        if self.image_at + 1 < len(images):
            following = self.world.rng.randint(self.image_at + 1, len(images) - 1)
            before, after = images[self.image_at], images[following]
            self.image_at = following
            self.manager.publish(MetadataDelta.between(before, after), after)
        if self.world.controller.brokers[self.id].fenced and (
            images[self.image_at].brokers[self.id].epoch == self.epoch
        ):
            self.world.controller.unfence(self.id, self.epoch)

    def serve(self, request: Request, version: int) -> Response:
        """Respond to a follower."""
        if isinstance(request, FetchRequest):
            return self._serve_fetch(request, version)
        assert isinstance(request, ListOffsetsRequest)
        (asked,) = request.topics[0].partitions
        part = ListOffsetsPartitionResponse(partition_index=0)
        try:
            partition = self.partition
            partition.check_leader_epoch(asked.current_leader_epoch)
            found = (
                partition.latest_offset(FetchIsolation.LOG_END)
                if asked.timestamp == -1
                else partition.earliest_offset()
            )
            part.offset = found.offset
        except KafkaError as error:
            part.error_code = getattr(error, "code", -1)
        return ListOffsetsResponse(topics=[ListOffsetsTopicResponse(name="t", partitions=[part])])

    def _serve_fetch(self, request: FetchRequest, version: int) -> FetchResponse:
        source = _Source(
            self.sessions.context(request, version, {TOPIC_ID: "t"}.get, is_privileged=True)  # type: ignore[arg-type]
        )
        state = request.replica_state
        params = FetchParams(
            0, 1, request.max_bytes, FetchIsolation.LOG_END, state.replica_id, state.replica_epoch
        )
        done: list[FetchResults] = []
        self.manager.fetch_records(params, source, done.append)
        results = [(each, done[0][each.topic_partition]) for each in source.taken]
        selected = source.context.select(results)
        topics = _topic_responses(selected.partitions)
        for topic in topics:
            for part in topic.partitions:
                part.records = bytes(contiguous(part.records))
        return FetchResponse(
            error_code=selected.error_code, session_id=selected.session_id, responses=topics
        )


class _Source:
    """Partitions of a fetch; remembers what was read."""

    def __init__(self, context: FetchContext) -> None:
        self.context = context
        self.taken: Sequence[CachedPartition] = ()
        self.watch_keys = context.watch_keys
        self.waiting = context.waiting

    def take(self) -> Sequence[CachedPartition]:
        self.taken = self.context.take()
        return self.taken


class ToLeader:
    """Connection of a follower."""

    def __init__(self, node: Node, leader: int) -> None:
        self._node, self._leader, self._life = node, leader, node.life

    def wakeup(self) -> None:
        """Do nothing: the world steps the fetchers."""

    def send(self, request: Request, version: int, on_response: OnResponse) -> None:
        world, node, life = self._node.world, self._node, self._life
        encoded = request.encode_bytes(version)
        assert encoded

        def respond(response: Response | KafkaError) -> None:
            if node.alive and node.life == life:
                on_response(response)

        def arrive() -> None:
            leader = world.nodes[self._leader]
            if world.is_cut(node.id, self._leader) or not leader.alive:
                world.later(lambda: respond(DisconnectedError("lost")))
                return
            response = leader.serve(request, version)
            if world.rng.random() < world.loss:
                world.later(lambda: respond(DisconnectedError("lost")))
            else:
                world.later(lambda: respond(response))

        world.later(arrive)


def _outcome(response: AlterPartitionResponse | None) -> AlterPartitionResponse | KafkaError:
    if response is None:
        return DisconnectedError("the controller: closed")
    return error_for_code(response.error_code) or response


class ToController:
    """Connection of a broker to the controller; requests may arrive twice."""

    def __init__(self, node: Node) -> None:
        self._node, self._life = node, node.life

    def send(
        self,
        request: AlterPartitionRequest,
        on_response: Callable[[AlterPartitionResponse | KafkaError], None],
    ) -> None:
        world, node, life = self._node.world, self._node, self._life
        assert request.encode_bytes(3)

        def respond(response: AlterPartitionResponse | None) -> None:
            if node.alive and node.life == life:
                on_response(_outcome(response))

        def arrive() -> None:
            if world.rng.random() < world.loss:
                world.later(lambda: respond(None))
                return
            response = world.controller.alter(request)
            lost = world.rng.random() < world.loss
            world.later(lambda: respond(None if lost else response))

        world.later(arrive)
        if world.rng.random() < world.loss:
            world.later(lambda: (world.controller.alter(request), None)[1])


class World:
    """Three brokers, their controller, and the messages between them.

    Attributes:
        loss: Probability that a message is lost.
    """

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.clock = ManualClock()
        self.loss = 0.05
        self.messages: list[Callable[[], None]] = []
        self.cut: set[frozenset[int]] = set()
        self.controller = Controller()
        self.nodes: dict[int, Node] = {}
        for each in BROKERS:
            self.nodes[each] = Node(self, each)
        self.truth = Truth(self)
        self._serial = 0

    def later(self, message: Callable[[], None]) -> None:
        """Deliver a message at some time."""
        self.messages.append(message)

    def is_cut(self, a: int, b: int) -> bool:
        """Return whether two brokers cannot reach each other."""
        return frozenset((a, b)) in self.cut

    def live(self) -> list[Node]:
        """Return the brokers that run."""
        return [node for node in self.nodes.values() if node.alive]

    def deliver(self) -> None:
        if self.messages:
            self.messages.pop(self.rng.randrange(len(self.messages)))()

    def step_fetchers(self) -> None:
        for node in self.live():
            for fetcher in node.fetchers.fetchers():
                fetcher.step(self.clock.monotonic_ms())

    def produce(self) -> None:
        node = self.rng.choice(list(self.nodes.values()))
        if not node.alive or not node.partition.is_leader:
            return
        self._serial += 1
        batch = make_batch(self.rng.randint(1, 3), value=b"%d" % self._serial)
        epoch = node.partition.leader_epoch

        def done(results: AppendResults) -> None:
            result = results[T0]
            if result.error is None:
                self.truth.acknowledge(node, result.base_offset, result.end_offset, epoch)

        node.manager.append_records(-1, {T0: MemoryRecords(batch)}, 1e9, done)

    def publish(self) -> None:
        nodes = self.live()
        if nodes:
            self.rng.choice(nodes).publish_next()

    def pass_time(self) -> None:
        self.clock.elapsed_ms += self.rng.choice((1, 5, 20, 60))
        for node in self.live():
            now_ms = self.clock.monotonic_ms()
            node.manager.step(now_ms)
            node.alter.step(now_ms)

    def kill(self) -> None:
        """Kill a broker; it loses data only if another member of the ISR runs."""
        nodes = self.live()
        if len(nodes) < 2:
            return
        node = self.rng.choice(nodes)
        isr = self.controller.partition.isr
        others = [each for each in isr if each != node.id and self.nodes[each].alive]
        node.stop(loses_data=bool(others) and self.rng.random() < 0.6)

    def notice(self) -> None:
        """Fence the brokers that do not run."""
        for node in self.nodes.values():
            if not node.alive:
                self.controller.fence(node.id)

    def restart(self) -> None:
        dead = [node for node in self.nodes.values() if not node.alive]
        if dead:
            node = self.rng.choice(dead)
            node.epoch = self.controller.register(node.id)
            node.start()

    def move_leader(self) -> None:
        self.controller.move_leader(self.rng.choice(BROKERS))

    def delete_records(self) -> None:
        for node in self.live():
            if node.partition.is_leader:
                log = node.partition.log
                low, high = log.log_start_offset, log.high_watermark
                node.partition.delete_records(self.rng.randint(low, max(low, high)))

    def flush(self) -> None:
        node = self.rng.choice(list(self.nodes.values()))
        if node.alive:
            node.partition.log.flush()

    def cut_or_heal(self) -> None:
        pair = frozenset(self.rng.sample(BROKERS, 2))
        self.cut = set() if self.cut else {pair}

    def run(self, steps: int) -> None:
        """Act by chance, and check everything after each action."""
        actions = {
            self.deliver: 60,
            self.step_fetchers: 30,
            self.produce: 20,
            self.publish: 25,
            self.pass_time: 20,
            self.kill: 1,
            self.notice: 2,
            self.restart: 3,
            self.move_leader: 2,
            self.delete_records: 0.5,
            self.flush: 2,
            self.cut_or_heal: 1,
        }
        chosen = self.rng.choices(list(actions), list(actions.values()), k=steps)
        for action in chosen:
            action()
            self.truth.check()
        self.heal()

    def heal(self) -> None:
        """End the faults; everything must be replicated and nothing acknowledged be lost."""
        self.loss, self.cut = 0.0, set()
        while len(self.live()) < len(BROKERS):
            self.restart()
        for _ in range(600):
            for action in (self.step_fetchers, self.deliver, self.publish, self.pass_time):
                action()
                self.truth.check()
        self.truth.check_end()


class Truth:
    """What was acknowledged, and what was visible; checks the invariants R1 to R10."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.visible: dict[int, Batch] = {}
        self.acknowledged: dict[int, Batch] = {}
        self.greatest_high_watermark = 0
        self._leader_high_watermarks: dict[int, int] = {}
        self._lives: dict[int, int] = {}
        self._log_starts: dict[tuple[int, int], int] = {}
        self._cache: dict[int, tuple[object, list[Batch]]] = {}

    def batches(self, node: Node) -> list[Batch]:
        log = node.partition.log
        local = log._local
        key = (node.life, log.log_end_offset, log.log_start_offset, local.truncations)
        cached = self._cache.get(node.id)
        if cached is None or cached[0] != key:
            cached = self._cache[node.id] = (key, batches_of(log))
        return cached[1]

    def acknowledge(self, node: Node, base_offset: int, end_offset: int, epoch: int) -> None:
        """Check R9 and remember an acknowledged batch."""
        log = node.partition.log
        if base_offset < log.log_start_offset:
            return
        batch = next(each for each in self.batches(node) if each.base_offset == base_offset)
        assert batch.epoch == epoch, "R9: acknowledged in another epoch"
        holders = [
            each.id
            for each in self.world.nodes.values()
            if (each.alive and (batch in self.batches(each) or _start(each) > base_offset))
            or (not each.alive and each.end_at_death >= end_offset)
            or each.lost_at > node.partition.in_sync.partition_epoch
        ]
        assert len(holders) >= MIN_ISR, f"R9: only {holders} hold {batch}"
        assert log.high_watermark >= end_offset, "R9: acknowledged before it is committed"
        self.acknowledged[base_offset] = batch

    def check(self) -> None:
        """Check the invariants of every broker that runs."""
        for node in self.world.live():
            if node.partition.log.log_end_offset or node.partition.leader_epoch >= 0:
                self._check_bounds(node)
                self._check_epochs(node)
                self._check_visible(node)
                self._check_leader(node)
                self._check_fetchers(node)
        self._check_matching()
        self._check_isr()

    def _check_bounds(self, node: Node) -> None:
        partition, log = node.partition, node.partition.log
        high_watermark = log.high_watermark
        bounds = (log.log_start_offset, log.last_stable_offset, high_watermark, log.log_end_offset)
        assert list(bounds) == sorted(bounds), f"R6: bounds of {node.id}: {bounds}"
        key = (node.id, node.life)
        assert log.log_start_offset >= self._log_starts.get(key, 0), "R6: log start fell"
        self._log_starts[key] = log.log_start_offset
        if partition.is_leader:
            epoch = partition.leader_epoch
            before = self._leader_high_watermarks.get(epoch, 0)
            if node.life == self._life_of(epoch, node):
                assert high_watermark >= before, "R6: high watermark of a leader fell"
            self._leader_high_watermarks[epoch] = max(before, high_watermark)
            self.greatest_high_watermark = max(self.greatest_high_watermark, high_watermark)
        else:
            assert high_watermark <= self.greatest_high_watermark, "R3: follower beyond leaders"

    def _life_of(self, epoch: int, node: Node) -> int:
        return self._lives.setdefault(epoch, node.life)

    def _check_epochs(self, node: Node) -> None:
        log = node.partition.log
        found = self.batches(node)
        epochs = [batch.epoch for batch in found]
        assert epochs == sorted(epochs), f"R8: epochs of {node.id} fall: {epochs}"
        ends = [batch.last_offset for batch in found]
        assert ends == sorted(ends), "R8: offsets fall"
        for before, after in pairwise(found):
            assert after.base_offset == before.last_offset + 1, f"R2: hole in {node.id}"
        starts: dict[int, int] = {}
        for batch in found:
            starts.setdefault(batch.epoch, max(batch.base_offset, log.log_start_offset))
        entries = log._state.epochs.entries
        known = {entry.epoch: entry.start_offset for entry in entries}
        for epoch, start in starts.items():
            assert known.get(epoch) == start, f"R8: epochs of {node.id}: {entries}, log {starts}"
        for earlier, later in pairwise(entries):
            assert earlier.start_offset < later.start_offset, "R8: start offsets do not rise"
        extra = known.keys() - starts.keys()
        assert all(known[each] >= log.log_end_offset for each in extra if known[each] > 0) or (
            not found
        ), f"R8: epochs without records: {entries}"
        if node.partition.is_leader:
            assert log.latest_epoch == node.partition.leader_epoch, "R8: epoch not assigned"

    def _check_visible(self, node: Node) -> None:
        """Check R5: what can be read at an offset never changes, at any replica."""
        high_watermark = node.partition.log.high_watermark
        for batch in self.batches(node):
            if batch.last_offset < high_watermark:
                seen = self.visible.setdefault(batch.base_offset, batch)
                assert seen == batch, f"R5: {node.id} has {batch}, before it was {seen}"

    def _check_leader(self, node: Node) -> None:
        partition, state = node.partition, node.partition.in_sync
        now = self.world.controller.partition
        if not partition.is_leader or partition.leader_epoch != now.leader_epoch:
            return
        assert state.maximal_isr >= set(now.isr), f"R4: {state.maximal_isr} against {now.isr}"
        history = self.world.controller.history
        assert set(history[state.partition_epoch]) == set(state.isr), "R4: ISR of another epoch"
        for each in {*now.isr, *state.maximal_isr}:
            other = self.world.nodes[each]
            if other.lost_at > state.partition_epoch:
                continue  # this leader does not know it yet
            end = other.partition.log.log_end_offset if other.alive else other.end_at_death
            assert partition.log.high_watermark <= end, f"R3: {each} ends at {end}"

    def _check_fetchers(self, node: Node) -> None:
        fetching = [
            partition for each in node.fetchers.fetchers() for partition in each.partitions()
        ]
        assert len(fetching) == len(set(fetching)), "R10: two fetchers"
        assert not (node.partition.is_leader and fetching), "R10: a leader is fetched"

    def _check_matching(self) -> None:
        """Check R2: logs with the same batch have the same batches before it."""
        logs = [
            {batch.base_offset: batch for batch in self.batches(node)} for node in self.world.live()
        ]
        for number, log in enumerate(logs):
            for other in logs[number + 1 :]:
                common = sorted(log.keys() & other.keys())
                same = [log[offset] == other[offset] for offset in common]
                agreed = [log[offset].epoch == other[offset].epoch for offset in common]
                assert all(equal for equal, epoch in zip(same, agreed, strict=True) if epoch), (
                    "R2: two batches of one epoch at an offset"
                )
                if True in same:
                    last = len(same) - 1 - same[::-1].index(True)
                    assert all(same[:last]), "R2: logs differ before a common batch"

    def _check_isr(self) -> None:
        """Check R7: the members of the ISR hold all that was visible."""
        for each in self.world.controller.partition.isr:
            node = self.world.nodes[each]
            if node.alive:
                held = self.batches(node)
                start = node.partition.log.log_start_offset
                offsets = {batch.base_offset: batch for batch in held}
                for offset, batch in self.visible.items():
                    if batch.last_offset >= start:
                        assert offsets.get(offset) == batch, f"R7: {each} lacks {batch}"

    def check_end(self) -> None:
        """Check R1, and that the logs are equal."""
        now = self.world.controller.partition
        assert sorted(now.isr) == list(BROKERS), f"L2: the ISR is {now.isr}"
        leader = self.world.nodes[now.leader]
        held = {batch.base_offset: batch for batch in self.batches(leader)}
        start = leader.partition.log.log_start_offset
        for offset, batch in self.acknowledged.items():
            if batch.last_offset >= start:
                assert held.get(offset) == batch, f"R1: {batch} is lost"
        for node in self.world.nodes.values():
            mine = {each.base_offset: each for each in self.batches(node)}
            assert all(held[each] == batch for each, batch in mine.items() if each in held)
            end = leader.partition.log.log_end_offset
            assert node.partition.log.log_end_offset == end, "L2: not replicated"
            assert node.partition.log.high_watermark == end, "L2: not committed"


def _start(node: Node) -> int:
    return node.partition.log.log_start_offset
