"""Traces of records against Apache Kafka, whose broker counts as one stage."""

import json
from collections.abc import Callable
from pathlib import Path

from integration.harness.running_kafka import RunningKafka
from kclient import Producer
from kclient.cli.main import main
from kclient.journey import Journey
from kclient.journey.stages import BROKER_IN_ALL, PRODUCER_STAGES

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


def test_command_reports_one_stage_for_the_broker(
    kafka: RunningKafka, topic: Topic, tmp_path: Path
) -> None:
    file = tmp_path / "trace.json"
    arguments = ["--topic", topic(partitions=1), "--records", "100", "--json", str(file)]
    assert main(["trace", "-b", kafka.bootstrap, *arguments]) == 0
    (section,) = json.loads(file.read_text())["sections"]
    stages = {stage["name"]: stage for stage in section["stages"]}
    assert stages[BROKER_IN_ALL.name]["count"] == section["whole"]["count"] == 100
    assert "broker in all" in section["note"]
