"""Random brokers, administrators and failovers on controllers in memory, and their invariants."""

from collections.abc import Callable
from random import Random
from typing import Any

from kclient.broker.controller.quorum_controller import QuorumController
from kclient.broker.controller.topic_control import PartitionsRequest, TopicRequest
from kclient.broker.metadata.features import ELIGIBLE_LEADER_REPLICAS_VERSION
from kclient.broker.metadata.metadata_delta import MetadataDelta
from kclient.broker.metadata.metadata_image import (
    NO_LEADER,
    RECOVERED,
    MetadataImage,
    PartitionRegistration,
)
from kclient.broker.raft.raft_types import NO_NODE, CommittedBatch
from kclient.common.errors import KafkaError
from kclient.protocol.messages.broker_to_controller import (
    AllocateProducerIdsRequest,
    AlterPartitionRequest,
    AlterPartitionRequestPartitionData,
    AlterPartitionRequestTopicData,
    BrokerState,
)
from kclient.protocol.messages.leaders_and_reassignments import (
    AlterPartitionReassignmentsRequest,
    ElectLeadersRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from kclient.protocol.messages.metadata_records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    RegisterBrokerRecord,
)
from kclient.protocol.messages.node_registration import UnregisterBrokerRequest
from kclient.protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from tests.support.virtual.memory_quorum import (
    ManualClock,
    MemoryQuorum,
    controller_of,
    heartbeat,
    levels,
    records_of,
    registration,
)

NODES = (100, 101, 102)
BROKERS = (1, 2, 3, 4)
TOPICS = ("a", "b", "c")
MIN_ISR = 2


class Observer:
    """Replay of the committed records one by one, with the invariants of cluster metadata.

    Attributes:
        image: Image after the last record.
        history: Images after each batch.
        clean: Brokers whose next registration follows a clean shutdown.
    """

    def __init__(self, *, unclean: bool) -> None:
        self.image = MetadataImage()
        self.history: list[MetadataImage] = []
        self.clean: dict[int, bool] = {}
        self._unclean = unclean
        self._ids: set[bytes] = set()
        self._epochs: dict[tuple[bytes, int], tuple[int, int]] = {}
        self._before_transaction: MetadataImage | None = None
        self._had_elr = False

    def observe(self, batch: CommittedBatch) -> None:
        """Apply a batch record by record."""
        for offset, record in enumerate(records_of(batch), batch.base_offset):
            if isinstance(record, BeginTransactionRecord):
                self._before_transaction = self.image
            elif isinstance(record, EndTransactionRecord):
                self._before_transaction = None
            elif isinstance(record, AbortTransactionRecord):
                assert self._before_transaction is not None
                self.image, self._before_transaction = self._before_transaction, None
                continue
            before = self.image
            delta = MetadataDelta(before)
            delta.replay(record)
            self.image = delta.apply(offset)
            self._had_elr |= self.elr_enabled
            self._check_change(before, self.image)
            self._check_image()
            if isinstance(record, RegisterBrokerRecord):
                self._check_registration(before, record, offset)
        if self._before_transaction is None:
            self._check_leaders()
            self.history.append(self.image)

    @property
    def committed(self) -> MetadataImage:
        """The image without an open transaction."""
        return self._before_transaction or self.image

    @property
    def elr_enabled(self) -> bool:
        return self.image.features.get(ELIGIBLE_LEADER_REPLICAS_VERSION, 0) > 0

    def _check_image(self) -> None:
        """C1, C2, C3, C5."""
        image = self.image
        assert {t.topic_id: n for n, t in image.topics.items()} == image.topic_names
        for topic in image.topics.values():
            for part in topic.partitions:
                self._check_partition(part)

    def _check_partition(self, part: PartitionRegistration) -> None:
        replicas, isr, elr = set(part.replicas), set(part.isr), set(part.elr)
        assert len(replicas) == len(part.replicas) == len(part.directories)
        assert len(isr) == len(part.isr)
        assert isr <= replicas, part
        assert elr <= replicas, part
        assert not isr & elr, part
        assert part.leader == NO_LEADER or part.leader in isr, part
        if self.elr_enabled:
            assert not elr or len(isr) < min(MIN_ISR, len(replicas)), part
        else:
            # Where the ELR feature was on, the last member may have lost its records.
            assert isr or self._had_elr, part
        for member in isr:
            broker = self.image.broker(member)
            active = broker is not None and broker.is_active
            assert active or (len(isr) == 1 and part.leader == NO_LEADER), (part, broker)
        adding, removing = set(part.adding), set(part.removing)
        assert adding | removing <= replicas, part
        assert not adding & removing, part
        assert replicas - removing, part

    def _check_change(self, old: MetadataImage, new: MetadataImage) -> None:
        """C4, C5 and Q9."""
        assert new.next_producer_id >= old.next_producer_id
        for name, topic in new.topics.items():
            before = old.topics.get(name)
            if before is None or before.topic_id != topic.topic_id:
                assert topic.topic_id not in self._ids
                self._ids.add(topic.topic_id)
                continue
            assert len(topic.partitions) >= len(before.partitions)
            for number, part in enumerate(topic.partitions[: len(before.partitions)]):
                self._check_partition_change(before.partitions[number], part)

    def _check_partition_change(
        self, old: PartitionRegistration, new: PartitionRegistration
    ) -> None:
        if new == old:
            return
        assert new.leader_epoch >= old.leader_epoch
        assert new.partition_epoch >= old.partition_epoch
        if new.leader != old.leader:
            assert new.leader_epoch > old.leader_epoch
        ended = not new.adding and not new.removing and set(new.replicas) < set(old.replicas)
        cancelled = ended and set(new.replicas) == set(old.replicas) - set(old.adding)
        if ended and not cancelled:
            assert set(new.replicas) == set(new.isr), (old, new)
        elif new.leader not in (old.leader, NO_LEADER):
            eligible = new.leader in old.isr + old.elr
            # The eligible ones may have lost their records in the same change.
            last_known = old.last_known_elr == (new.leader,) and not old.isr and not new.elr
            assert eligible or last_known or self._unclean, (old, new)
            assert eligible or new.recovery_state != RECOVERED, (old, new)

    def _check_registration(
        self, before: MetadataImage, record: RegisterBrokerRecord, offset: int
    ) -> None:
        old = before.broker(record.broker_id)
        if old is not None and old.incarnation_id == record.incarnation_id:
            return
        assert record.fenced
        assert old is None or record.broker_epoch > old.epoch
        assert offset - 1 <= record.broker_epoch <= offset  # a transaction starts before it
        clean = self.clean.get(record.broker_id, False)
        for topic in self.image.topics.values():
            for part in topic.partitions:
                if old is None or clean:
                    continue
                assert record.broker_id not in part.elr, part
                assert record.broker_id not in part.isr or part.isr == (record.broker_id,)
                assert record.broker_id not in part.isr or not self.elr_enabled

    def _check_leaders(self) -> None:
        """L3: no partition is without a leader although an eligible replica could lead."""
        for topic in self.image.topics.values():
            for part in topic.partitions:
                eligible = part.isr or (part.elr if self.elr_enabled else ())
                if part.leader == NO_LEADER:
                    assert not any(map(self._is_active, eligible)), part

    def _is_active(self, broker: int) -> bool:
        found = self.image.broker(broker)
        return found is not None and found.is_active


class Process:
    """A broker process, as far as the controller sees it.

    Attributes:
        incarnation: Number of its starts.
        epoch: Its broker epoch; -1 before its registration.
        runs: Whether it sends heartbeats.
        stops: Whether it is shutting down.
        clean_epoch: Epoch that it stored at its last clean shutdown.
    """

    def __init__(self) -> None:
        self.incarnation = 0
        self.epoch = -1
        self.runs = False
        self.stops = False
        self.clean_epoch = -1


class ControllerModel:
    """One run of random steps.

    Attributes:
        observer: Observer of the committed records.
        responses: Number of successful responses by type of request.
    """

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.clock = ManualClock()
        self.quorum = MemoryQuorum()
        unclean = self.random.random() < 0.3
        self.observer = Observer(unclean=unclean)
        self.quorum.on_batch = self.observer.observe
        elr = self.random.random() < 0.5
        features = levels(metadata_version=25)
        if elr:
            features += levels(eligible_leader_replicas_version=1)
        defaults = {
            "min.insync.replicas": str(MIN_ISR),
            "unclean.leader.election.enable": str(unclean).lower(),
        }
        for node in NODES:
            controller_of(
                self.quorum,
                node,
                self.clock,
                seed=node + seed,
                defaults=defaults,
                bootstrap=features,
                max_records=4,
            )
        self.quorum.elect(NODES[0])
        self.quorum.commits_at_once = False
        self.processes = {broker: Process() for broker in BROKERS}
        self.late: list[AlterPartitionRequest] = []
        self.blocks: list[int] = []
        self.responses: dict[str, int] = {}

    @property
    def controller(self) -> QuorumController:
        leader = self.quorum.leader
        return self.quorum.controllers[NODES[0] if leader == NO_NODE else leader]

    def run(self, steps: int) -> None:
        """Make random steps, then check that a quiet cluster recovers."""
        actions: list[tuple[int, Callable[[], None]]] = [
            (30, self._heartbeats),
            (25, self._alter_partition),
            (8, self._late_alter_partition),
            (6, self._start),
            (4, self._crash),
            (3, self._stop),
            (2, self._unregister),
            (5, self._create_topic),
            (1, self._delete_topic),
            (2, self._create_partitions),
            (8, self._reassign),
            (3, self._cancel),
            (6, self._elect_leaders),
            (4, self._allocate),
            (8, self._advance),
            (20, self._commit),
            (2, self._failover),
            (1, self._toggle_elr),
        ]
        weights = [weight for weight, _ in actions]
        for _ in range(steps):
            self.random.choices([action for _, action in actions], weights)[0]()
        self._recover()

    def _send(self, request: object, on_success: Callable[[Any], None] | None = None) -> None:
        def on_done(outcome: Any) -> None:
            if isinstance(outcome, KafkaError):
                return
            name = type(request).__name__
            self.responses[name] = self.responses.get(name, 0) + 1
            if on_success is not None:
                on_success(outcome)

        self.controller.handle(request, on_done)

    def _heartbeats(self) -> None:
        offset = self.quorum.high_watermark - 1
        for broker, process in self.processes.items():
            if not process.runs or process.epoch < 0 or self.random.random() < 0.3:
                continue
            self._heartbeat(broker, offset - self.random.randrange(3))

    def _heartbeat(self, broker: int, offset: int) -> None:
        process = self.processes[broker]

        def on_success(response: Any) -> None:
            if response.should_shut_down and process.stops:
                process.runs = process.stops = False
                process.clean_epoch = process.epoch
                self.observer.clean[broker] = True

        self._send(
            heartbeat(broker, process.epoch, offset, want_shut_down=process.stops), on_success
        )

    def _start(self) -> None:
        broker = self.random.choice(BROKERS)
        process = self.processes[broker]
        if process.runs and process.epoch >= 0:
            return
        if not process.runs:
            process.runs = True
            process.incarnation += 1
            process.epoch = -1
        incarnation = process.incarnation

        def on_success(response: Any) -> None:
            if process.incarnation == incarnation and process.runs:
                process.epoch = response.broker_epoch

        previous = process.clean_epoch
        self._send(registration(broker, incarnation, previous_epoch=previous), on_success)

    def _crash(self) -> None:
        broker = self.random.choice(BROKERS)
        process = self.processes[broker]
        process.runs = process.stops = False
        process.clean_epoch = -1
        self.observer.clean[broker] = False

    def _stop(self) -> None:
        process = self.processes[self.random.choice(BROKERS)]
        process.stops = process.runs and process.epoch >= 0

    def _unregister(self) -> None:
        broker = self.random.choice(BROKERS)
        if not self.processes[broker].runs:
            self._send(UnregisterBrokerRequest(broker_id=broker))

    def _create_topic(self) -> None:
        name = self.random.choice(TOPICS)
        factor = self.random.randint(1, 3)
        request = TopicRequest(name, self.random.randint(1, 3), factor)
        self.controller.create_topics([request], lambda _plans: None)

    def _delete_topic(self) -> None:
        self.controller.delete_topics(
            [(self.random.choice(TOPICS), bytes(16))], lambda _plans: None
        )

    def _create_partitions(self) -> None:
        request = PartitionsRequest(self.random.choice(TOPICS), self.random.randint(1, 4))
        self.controller.create_partitions([request], lambda _plans: None)

    def _alter_partition(self) -> None:
        """Propose an ISR as a leader does, from an image that may be old."""
        history = self.observer.history or [self.observer.committed]
        age = self.random.choice((1, 1, 1, 2, 5, 10))
        image = history[-min(age, len(history))]
        led = [
            (topic, number, part)
            for topic in image.topics.values()
            for number, part in enumerate(topic.partitions)
            if part.leader != NO_LEADER
        ]
        if not led:
            return
        topic, number, part = self.random.choice(led)
        sender = image.brokers.get(part.leader)
        if sender is None:
            return
        others = [each for each in part.replicas if each != part.leader]
        members = [part.leader, *(each for each in others if self.random.random() < 0.7)]
        states = [
            BrokerState(broker_id=member, broker_epoch=image.brokers[member].epoch)
            for member in members
            if member in image.brokers
        ]
        data = AlterPartitionRequestPartitionData(
            partition_index=number,
            leader_epoch=part.leader_epoch,
            new_isr_with_epochs=states,
            partition_epoch=part.partition_epoch,
        )
        topics = [AlterPartitionRequestTopicData(topic_id=topic.topic_id, partitions=[data])]
        request = AlterPartitionRequest(
            broker_id=part.leader, broker_epoch=sender.epoch, topics=topics
        )
        if self.random.random() < 0.3:
            self.late.append(request)
        else:
            self._send_alter_partition(request)

    def _late_alter_partition(self) -> None:
        if self.late:
            index = self.random.randrange(len(self.late))
            again = self.random.random() < 0.3
            self._send_alter_partition(self.late[index] if again else self.late.pop(index))

    def _send_alter_partition(self, request: AlterPartitionRequest) -> None:
        brokers = self.controller._view.image.brokers
        (topic,) = request.topics
        (data,) = topic.partitions
        known = {
            state.broker_id: brokers[state.broker_id].epoch
            for state in data.new_isr_with_epochs
            if state.broker_id in brokers
        }
        latest = self.controller._view.image.topic_by_id(topic.topic_id)
        before = None
        if latest is not None and data.partition_index < len(latest.partitions):
            before = latest.partitions[data.partition_index]

        def on_success(response: Any) -> None:
            (result,) = response.topics[0].partitions
            if result.error_code:
                return
            assert before is not None
            assert before.partition_epoch == data.partition_epoch
            for state in data.new_isr_with_epochs:
                assert known[state.broker_id] == state.broker_epoch
            committed = self.controller.image.topic_by_id(topic.topic_id)
            if committed is not None:
                part = committed.partitions[data.partition_index]
                assert part.partition_epoch >= result.partition_epoch

        self._send(request, on_success)

    def _reassign(self) -> None:
        replicas = self.random.sample(BROKERS, self.random.randint(1, 3))
        self._send_reassignment(replicas)

    def _cancel(self) -> None:
        self._send_reassignment(None)

    def _send_reassignment(self, replicas: list[int] | None) -> None:
        wanted = ReassignablePartition(partition_index=self.random.randrange(3), replicas=replicas)
        topic = ReassignableTopic(name=self.random.choice(TOPICS), partitions=[wanted])
        self._send(AlterPartitionReassignmentsRequest(topics=[topic]))

    def _elect_leaders(self) -> None:
        kind = 1 if self.observer._unclean and self.random.random() < 0.5 else 0
        self._send(ElectLeadersRequest(election_type=kind, topic_partitions=None))

    def _allocate(self) -> None:
        broker = self.random.choice(BROKERS)
        request = AllocateProducerIdsRequest(
            broker_id=broker, broker_epoch=self.processes[broker].epoch
        )

        def on_success(response: Any) -> None:
            start = response.producer_id_start
            assert start not in self.blocks
            assert self.observer.image.next_producer_id >= start + response.producer_id_len
            self.blocks.append(start)

        self._send(request, on_success)

    def _advance(self) -> None:
        self.clock.now += self.random.choice((100, 1000, 2500, 5000))
        self.controller.poll()

    def _commit(self) -> None:
        self.quorum.commit(self.random.choice((1, 2, None)))

    def _failover(self) -> None:
        uncommitted = self.quorum.batches[-1].last_offset - self.quorum.high_watermark + 1
        keep = self.random.randint(0, min(uncommitted, 3))
        self.quorum.elect(self.random.choice(NODES), keep)
        self._check_images()

    def _toggle_elr(self) -> None:
        level = 0 if self.observer.elr_enabled else 1
        update = FeatureUpdateKey(
            feature=ELIGIBLE_LEADER_REPLICAS_VERSION,
            max_version_level=level,
            upgrade_type=1 if level else 2,
        )
        self._send(UpdateFeaturesRequest(feature_updates=[update]))

    def _check_images(self) -> None:
        """Q8: all controllers have the same committed image."""
        expected = self.observer.committed
        for controller in self.quorum.controllers.values():
            image = controller.image
            assert image.topics == expected.topics
            assert image.brokers == expected.brokers
            assert image.next_producer_id == expected.next_producer_id

    def _recover(self) -> None:
        """L3: once all brokers run, each partition has a leader within the session timeout."""
        self.quorum.commits_at_once = True
        self.quorum.elect(self.random.choice(NODES))
        for process in self.processes.values():
            process.stops = False
            if not process.runs:
                process.runs, process.epoch = True, -1
                process.incarnation += 1
        for _ in range(6):
            for broker, process in self.processes.items():
                incarnation = process.incarnation
                known = self.controller.image.broker(broker)
                if known is None or known.epoch != process.epoch or known.in_controlled_shutdown:
                    if known is not None and known.in_controlled_shutdown:
                        process.incarnation = incarnation = incarnation + 1
                        self.observer.clean[broker] = False
                        process.clean_epoch = -1
                    self._register_again(broker, process)
                else:
                    self._heartbeat(broker, self.quorum.high_watermark)
            self.clock.now += 2500
            self.controller.poll()
        assert all(broker.is_active for broker in self.controller.image.brokers.values())
        self._check_images()
        for topic in self.controller.image.topics.values():
            for part in topic.partitions:
                lost = self.observer.elr_enabled and len(part.last_known_elr) != 1
                assert part.leader != NO_LEADER or (not part.isr and lost), part

    def _register_again(self, broker: int, process: Process) -> None:
        def on_success(response: Any) -> None:
            process.epoch = response.broker_epoch

        previous = process.clean_epoch
        self._send(registration(broker, process.incarnation, previous_epoch=previous), on_success)
