"""Stages of a record, in the order of the code, and the stages of one traced record."""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple


class Stage(NamedTuple):
    """A stage: it ends where the next one starts.

    Attributes:
        name: Name.
        file: File of the code that runs in it, or waits.
        function: Function in that file.
        metric: Kafka's metric of the same time, empty if there is none.
        until: What ends the stage.
    """

    name: str
    file: str
    function: str
    metric: str
    until: str


PRODUCER_STAGES = (
    Stage(
        "interceptors",
        "kclient/producer/interceptors.py",
        "on_send",
        "",
        "the arguments are checked, and the interceptors have returned the record",
    ),
    Stage(
        "serializing",
        "kclient/producer/send_arguments.py",
        "serialize",
        "",
        "key and value are bytes",
    ),
    Stage(
        "partitioning",
        "kclient/producer/partition_chooser.py",
        "queue",
        "metadata-wait-time-ns-total",
        "the partitions of the topic are known, and one is chosen or left to the sticky partition",
    ),
    Stage(
        "accumulator wait",
        "kclient/producer/record_accumulator.py",
        "append_to_new_batch",
        "record-queue-time-avg",
        "the sender drains the batch: it is full, or `linger.ms` has passed",
    ),
    Stage(
        "retries",
        "kclient/producer/produce_response_handler.py",
        "handle",
        "record-retry-total",
        "the sender drains the batch for its last request",
    ),
    Stage(
        "sender queue",
        "kclient/producer/sender.py",
        "send_due",
        "",
        "the sender starts to prepare the request of the batch",
    ),
    Stage(
        "request encode",
        "kclient/client/node_connections.py",
        "write",
        "",
        "the batches are sealed and compressed, and the encoded request is queued for the socket",
    ),
    Stage(
        "wire to broker",
        "kclient/network/selector.py",
        "poll",
        "",
        "the broker has read the request from its socket",
    ),
    Stage(
        "broker request queue",
        "kclient/broker/network/processor.py",
        "run_once",
        "RequestQueueTimeMs",
        "a thread of the broker starts to handle the request",
    ),
    Stage(
        "broker local",
        "kclient/broker/server/kafka_apis.py",
        "process",
        "LocalTimeMs",
        "the records are in the log of the leader",
    ),
    Stage(
        "broker remote",
        "kclient/broker/replication/delayed_requests.py",
        "on_complete",
        "RemoteTimeMs",
        "the replicas that `acks` requires have the records",
    ),
    Stage(
        "broker response queue",
        "kclient/broker/network/processor.py",
        "enqueue_response",
        "ResponseQueueTimeMs",
        "the network thread of the broker starts to write the response",
    ),
    Stage(
        "wire back",
        "kclient/client/network_client.py",
        "poll",
        "ResponseSendTimeMs",
        "the sender wakes up because the response has arrived",
    ),
    Stage(
        "callback",
        "kclient/producer/produce_response_handler.py",
        "handle",
        "",
        "the response is decoded, and the delivery callback of the record has returned",
    ),
)

BROKER_IN_ALL = Stage(
    "broker in all",
    "kclient/client/network_client.py",
    "poll",
    "request-latency-avg",
    "the sender wakes up because the response has arrived; the broker's stages are not known",
)


class Trace(NamedTuple):
    """Stages of one record, without gap or overlap.

    Attributes:
        topic: Topic.
        partition: Partition.
        offset: Offset; -1 if the broker sent no response.
        started_ns: Start of the first stage, on the monotonic clock.
        ended_ns: End of the last stage.
        durations_ns: Time of each stage by name, in order.
    """

    topic: str
    partition: int
    offset: int
    started_ns: int
    ended_ns: int
    durations_ns: dict[str, int]


def durations(names: Sequence[str], points_ns: Sequence[int]) -> dict[str, int]:
    """Return the time of each stage, from the points between them.

    Some points are milliseconds as float, which differ from nanoseconds in the last digit; a point
    is therefore never earlier than the one before.

    Args:
        names: The stages.
        points_ns: Start of the first one and end of each.
    """
    ordered: list[int] = []
    for point in points_ns:
        ordered.append(max(point, ordered[-1]) if ordered else point)
    return {name: end - start for name, (start, end) in zip(names, pairwise(ordered), strict=True)}
