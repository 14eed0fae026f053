"""Options of the sink."""

import pytest

from kclient.common.errors import ConfigError
from kclient.spark.options.sink_options import SinkOptions

SERVERS = {"kafka.bootstrap.servers": "localhost:9092"}


def test_sink_options_are_parsed() -> None:
    found = SinkOptions.parse({**SERVERS, "TOPIC": "out", "checkpointlocation": "/x"})
    assert (found.topic, found.delivery) == ("out", "at-least-once")
    assert found.producer == {"bootstrap.servers": "localhost:9092"}


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"delivery": "exactly-once"}, "exactly-once delivery needs transactions"),
        ({"delivery": "sometimes"}, "expected 'at-least-once'"),
        ({"sinkId": "x"}, "sinkId: got 'x'"),
        ({"exactlyOnceCommit": "task"}, "exactlyOnceCommit: got 'task'"),
        ({"transactionalIdPrefix": "x"}, "exactly-once delivery needs transactions"),
        ({"deliveryTimeoutMs": "0"}, "deliveryTimeoutMs: got '0'"),
        ({"subscribe": "x"}, "it is an option of the source"),
        ({"topic": "a b"}, "topic: got 'a b'"),
        ({"topc": "a"}, "did you mean 'topic'?"),
        ({"kafka.key.serializer": "x"}, "keys and values are bytes"),
        ({"kafka.acks": "7"}, "kafka.acks: got '7'"),
    ],
)
def test_wrong_sink_options_fail(given: dict[str, str], text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        SinkOptions.parse({**SERVERS, **given})
    assert text in str(caught.value)
