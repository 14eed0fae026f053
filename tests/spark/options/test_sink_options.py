"""Options of the sink."""

import pytest

from kclient.common.errors import ConfigError
from kclient.spark.options.sink_options import SinkOptions

SERVERS = {"kafka.bootstrap.servers": "localhost:9092"}


def test_sink_options_are_parsed() -> None:
    found = SinkOptions.parse({**SERVERS, "TOPIC": "out", "checkpointlocation": "/x"})
    assert (found.topic, found.delivery) == ("out", "at-least-once")
    assert found.producer == {"bootstrap.servers": "localhost:9092"}
    assert found.transactional_id_prefix == "kclient-spark"
    found = SinkOptions.parse({**SERVERS, "Delivery": " Exactly-Once", "SINKID": "s"})
    assert (found.delivery, found.sink_id, found.write_id) == ("exactly-once", "s", None)


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"delivery": "sometimes"}, "expected 'at-least-once' or 'exactly-once'"),
        ({"sinkId": "a\nb"}, "sinkId: got 'a\\nb' (str), expected a text of 1 to 200 printable"),
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
