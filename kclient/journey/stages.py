"""Stages of a record and of a request, in the order of the code."""

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

CONSUMER_STAGES = (
    Stage(
        "fetch wait",
        "kclient/consumer/fetcher.py",
        "send_fetches",
        "fetch-latency-avg",
        "the broker starts to write the response to the Fetch request that returns the record",
    ),
    Stage(
        "wire",
        "kclient/network/selector.py",
        "poll",
        "ResponseSendTimeMs",
        "the consumer wakes up because the response has arrived",
    ),
    Stage(
        "fetch buffer",
        "kclient/consumer/fetch_buffer.py",
        "first",
        "",
        "the response is read and decoded, and a poll takes records of the partition from it",
    ),
    Stage(
        "decode",
        "kclient/consumer/completed_fetch.py",
        "take",
        "",
        "the batches are checked and decompressed, and their records are objects or columns",
    ),
    Stage(
        "deserializing",
        "kclient/record/reference/batch_cursor.py",
        "_deserialized",
        "",
        "the deserializers have returned the keys and values of these records",
    ),
    Stage(
        "handed out",
        "kclient/consumer/consumer_core.py",
        "_take_records",
        "",
        "the interceptors have run, the next fetch is sent, and `poll` returns",
    ),
    Stage(
        "processing",
        "kclient/consumer/consumer.py",
        "poll",
        "time-between-poll-avg",
        "the application polls again, or commits the offset after the record",
    ),
    Stage(
        "commit",
        "kclient/consumer/commits.py",
        "commit",
        "commit-latency-avg",
        "the group coordinator has acknowledged an offset after the record",
    ),
)

_FETCH_UNTIL = {
    "broker local": "the log is read, or the broker finds fewer bytes than `fetch.min.bytes`",
    "broker remote": "records have arrived, or `fetch.max.wait.ms` has passed",
    "wire back": "the consumer wakes up because the response has arrived",
}
FETCH_STAGES = tuple(
    stage._replace(until=_FETCH_UNTIL.get(stage.name, stage.until))
    for stage in PRODUCER_STAGES
    if stage.name.startswith(("wire", "broker"))
)
"""Stages of a Fetch request."""
