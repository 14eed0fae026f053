"""Traces of records against Apache Kafka, whose broker counts as one stage."""

import json
from collections.abc import Callable
from pathlib import Path

from integration.harness.running_kafka import RunningKafka
from kclient import Consumer, Producer, TopicPartition
from kclient.cli.main import main
from kclient.journey import Journey
from kclient.journey.stages import BROKER_IN_ALL, CONSUMER_STAGES, PRODUCER_STAGES

Topic = Callable[..., str]


def test_stages_add_up_with_the_broker_as_one(kafka: RunningKafka, topic: Topic) -> None:
    name = topic(partitions=1)
    with Producer(bootstrap_servers=kafka.bootstrap) as producer:
        producer.send(name, b"first").result(30)
        with Journey(producer, interval=0) as journey:
            for number in range(200):
                producer.send(name, b"%d" % number)
        traces = journey.traces()
    assert sorted(trace.offset for trace in traces) == list(range(1, 201))
    client = {stage.name for stage in PRODUCER_STAGES if not stage.name.startswith("broker")}
    for trace in traces:
        assert set(trace.durations_ns) - client == {BROKER_IN_ALL.name}
        assert sum(trace.durations_ns.values()) == trace.ended_ns - trace.started_ns
        assert trace.durations_ns[BROKER_IN_ALL.name] > 0


def test_stages_add_up_from_send_to_the_commit(kafka: RunningKafka, topic: Topic) -> None:
    name = topic(partitions=1)
    with (
        Producer(bootstrap_servers=kafka.bootstrap) as producer,
        Consumer(
            bootstrap_servers=kafka.bootstrap,
            group_id=f"group-of-{name}",
            enable_auto_commit=False,
            value_deserializer=bytes.decode,
        ) as consumer,
    ):
        first = producer.send(name, b"first").result(30)
        consumer.assign([TopicPartition(name, 0)])
        consumer.seek(TopicPartition(name, 0), first.offset)
        assert len(consumer.poll(30)) == 1
        with Journey(producer, consumer, interval=0) as journey:
            for number in range(200):
                producer.send(name, b"%d" % number)
            left = 200
            while left:
                left -= len(consumer.poll(30))
                consumer.commit()
            producer.flush(30)
        traces = journey.consumed_traces()
    assert [trace.offset for trace in traces] == list(range(1, 201))
    sent = [stage.name for stage in PRODUCER_STAGES]
    read = [stage.name for stage in CONSUMER_STAGES if stage.name != "wire"]
    names = [*sent[: sent.index("wire to broker")], BROKER_IN_ALL.name, *read]
    for trace in traces:
        assert list(trace.durations_ns) == names
        assert sum(trace.durations_ns.values()) == trace.ended_ns - trace.started_ns


def test_command_reports_one_stage_for_the_broker(
    kafka: RunningKafka, topic: Topic, tmp_path: Path
) -> None:
    file = tmp_path / "trace.json"
    arguments = ["--topic", topic(partitions=1), "--records", "100", "--json", str(file)]
    assert main(["trace", "-b", kafka.bootstrap, *arguments]) == 0
    sections = json.loads(file.read_text())["sections"]
    assert [section["title"] for section in sections] == [
        "from send() to the delivery callback",
        "from send() to the commit",
    ]
    for section in sections:
        stages = {stage["name"]: stage for stage in section["stages"]}
        assert stages[BROKER_IN_ALL.name]["count"] == section["whole"]["count"] == 100
    assert "broker in all" in sections[0]["note"]
    assert "fetch wait: up to the response" in sections[1]["note"]
