"""Options of the source."""

import pytest

from kclient.common.errors import ConfigError
from kclient.common.types import TopicPartition
from kclient.spark.common.offsets import EARLIEST, LATEST
from kclient.spark.options.source_options import SourceOptions
from tests.support.checks.travelled import travelled

SERVERS = {"kafka.bootstrap.servers": "localhost:9092"}


def parse(given: dict[str, str], streaming: bool | None = None) -> SourceOptions:
    return SourceOptions.parse({**SERVERS, **given}, streaming=streaming)


def refusal(options: dict[str, str], streaming: bool | None = None) -> str:
    with pytest.raises(ConfigError) as caught:
        SourceOptions.parse(options, streaming=streaming)
    return str(caught.value)


def test_option_names_are_case_insensitive() -> None:
    found = SourceOptions.parse(
        {
            "kafka.bootstrap.servers": "h:1",
            "SUBSCRIBE": "b, a",
            "maxoffsetspertrigger": "10",
            "kafkaconsumer.polltimeoutms": "77",
            "fetchoffset.numretries": "5",
            "includeHeaders": "true",
        }
    )
    assert found.subscription.topics == ("a", "b")
    assert found.limits.max_offsets == 10
    assert found.limits.first_option == "maxOffsetsPerTrigger"
    assert found.reading.poll_timeout_ms == 77
    assert found.lookup_retries == 5
    assert found.reading.include_headers


def test_default_start_is_earliest_for_batches_and_latest_for_streams() -> None:
    assert parse({"subscribe": "t"}, streaming=False).starting.everywhere == EARLIEST
    assert parse({"subscribe": "t"}, streaming=True).starting.everywhere == LATEST
    assert parse({"subscribe": "t"}, streaming=False).ending.everywhere == LATEST


def test_assign_and_offsets_by_partition() -> None:
    found = parse({"assign": '{"t":[1,0]}', "startingOffsets": '{"t":{"0":5,"1":-2}}'})
    assert found.subscription.partitions == (TopicPartition("t", 0), TopicPartition("t", 1))
    assert found.starting.offsets == {TopicPartition("t", 0): 5, TopicPartition("t", 1): EARLIEST}
    assert not found.starting.may_resolve_to_latest(unmatched_is_latest=True)


def test_precedence_of_starting_options() -> None:
    several = {"startingOffsetsByTimestamp": '{"t":{"0":7}}', "startingOffsets": "earliest"}
    assert parse({"subscribe": "t", **several}).starting.timestamps == {TopicPartition("t", 0): 7}
    assert parse({"subscribe": "t", "startingTimestamp": "9", **several}).starting.timestamp_ms == 9


def test_consumer_defaults_of_the_source() -> None:
    consumer = parse({"subscribe": "t"}).reading.consumer
    assert consumer["isolation.level"] == "read_committed"
    assert consumer["allow.auto.create.topics"] == "false"
    assert consumer["auto.offset.reset"] == "none"
    loose = SourceOptions.parse(
        {**SERVERS, "subscribe": "t", "kafka.isolation.level": "read_uncommitted"}
    )
    assert loose.reading.consumer["isolation.level"] == "read_uncommitted"


def test_trigger_delay_accepts_units() -> None:
    assert parse({"subscribe": "t", "maxTriggerDelay": "15m"}).limits.max_delay_ms == 900_000
    assert parse({"subscribe": "t", "maxTriggerDelay": "250"}).limits.max_delay_ms == 250
    assert "maxTriggerDelay: got 'soon'" in refusal(
        {**SERVERS, "subscribe": "t", "maxTriggerDelay": "soon"}
    )


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({}, "got none of them, expected exactly one"),
        ({"subscribe": "a", "assign": '{"a":[0]}'}, "got subscribe and assign"),
        ({"subscribe": "a b"}, "subscribe: got 'a b'"),
        ({"subscribePattern": "("}, "subscribePattern: got '('"),
        ({"assign": '{"a":0}'}, "assign: got"),
        ({"subscribe": "a", "startingOffset": "x"}, "did you mean 'startingOffsets'?"),
        ({"subscribe": "a", "topic": "x"}, "it is an option of the sink"),
        ({"subscribe": "a", "startingOffsets": "begin"}, "expected 'earliest', 'latest' or JSON"),
        ({"subscribe": "a", "startingOffsets": '{"a":{"0":-3}}'}, "-1 for the end, -2 for"),
        ({"subscribe": "a", "endingOffsets": "earliest"}, "endingOffsets: got 'earliest'"),
        ({"subscribe": "a", "endingOffsets": '{"a":{"0":-2}}'}, "endingOffsets: got"),
        ({"subscribe": "a", "failOnDataLoss": "no"}, "failOnDataLoss: got 'no'"),
        ({"subscribe": "a", "maxOffsetsPerTrigger": "0"}, "maxOffsetsPerTrigger: got '0'"),
        ({"subscribe": "a", "kafka.group.id": "g"}, "option 'groupId'"),
        ({"subscribe": "a", "kafka.auto.offset.reset": "latest"}, "'startingOffsets'"),
        ({"subscribe": "a", "kafka.fetch.min.byte": "1"}, "did you mean 'kafka.fetch.min.bytes'?"),
        ({"subscribe": "a", "kafka.fetch.max.wait.ms": "x"}, "kafka.fetch.max.wait.ms: got 'x'"),
        ({"subscribe": "a", "kafka.acks": "1"}, "kafka.*: unknown option 'acks' for Consumer"),
        (
            {
                "subscribe": "a",
                "kafka.isolation.level": "read_uncommitted",
                "isolationLevel": "read_committed",
            },
            "isolationLevel: got",
        ),
    ],
)
def test_wrong_source_options_fail(given: dict[str, str], text: str) -> None:
    assert text in refusal({**SERVERS, **given})


def test_bootstrap_servers_are_required() -> None:
    assert "kafka.bootstrap.servers: got nothing" in refusal({"subscribe": "a"})


def test_positions_that_read_nothing_fail() -> None:
    text = refusal({**SERVERS, "subscribe": "a", "endingoffsets": "latest"}, streaming=True)
    assert "a stream does not end" in text
    text = refusal({**SERVERS, "subscribe": "a", "startingOffsets": "latest"}, streaming=False)
    assert "reads nothing" in text


def test_secrets_are_not_shown() -> None:
    secret = "hunter2"
    options = {**SERVERS, "subscribe": "t", "kafka.client.id": secret}
    found = SourceOptions.parse(options)
    assert secret not in repr(found)
    assert travelled(found) == found
    text = refusal({**SERVERS, "subscribe": "t", "kafka.sasl.jaas.config": secret})
    assert secret not in text
    assert "expected kafka.sasl.jaas.config.file or kafka.sasl.jaas.config.env; Spark shows" in text
