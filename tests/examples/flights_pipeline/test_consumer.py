"""The consumer of the flights pipeline: it stores records before it commits them."""

import io
import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest

from examples.flights_pipeline.consumer import collect
from examples.flights_pipeline.figures import Cell, Figures
from examples.flights_pipeline.group import ReportGroup
from examples.flights_pipeline.kafka_access import KafkaAccess
from examples.flights_pipeline.pipeline_settings import PipelineSettings
from examples.flights_pipeline.progress import Progress
from examples.flights_pipeline.result_table import ResultTable
from examples.flights_pipeline.topics import PARTITIONS, check_topics, create_topics
from kclient.admin.admin_types import ConfigResource, ConfigResourceType
from kclient.errors import ConfigError, KafkaError
from kclient.testing import EmbeddedCluster
from tests.support.clients.clients import Clients, place

Send = Callable[[Iterable[tuple[str, int]]], None]
UA = Cell("2013-01-01", "UA", "EWR")


def access(clients: Clients) -> KafkaAccess:
    return KafkaAccess({"bootstrap.servers": clients.bootstrap})


@pytest.fixture(scope="module")
def cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster() as made:
        yield made


@pytest.fixture
def clients(cluster: EmbeddedCluster) -> Iterator[Clients]:
    with Clients(cluster.bootstrap_servers) as made:
        yield made


@pytest.fixture
def settings(clients: Clients) -> PipelineSettings:
    made = PipelineSettings(prefix=f"{clients.group()}-")
    create_topics(access(clients), made)
    return made


@pytest.fixture
def send(clients: Clients, settings: PipelineSettings) -> Send:
    def send(records: Iterable[tuple[str, int]]) -> None:
        producer = clients.producer()
        for key, flights in records:
            value = {"flights": flights, "cancelled": 0, "late": 0, "delay_sum": 0}
            producer.send(settings.statistics_topic, json.dumps(value).encode(), key=key.encode())
        producer.flush(20)

    return send


@pytest.fixture
def table(tmp_path: Path) -> Iterator[ResultTable]:
    with ResultTable(tmp_path / "statistics.sqlite") as made:
        yield made


def committed(clients: Clients, settings: PipelineSettings) -> dict[int, int]:
    found = clients.admin().list_consumer_group_offsets(settings.group)
    return {partition.partition: where.offset for partition, where in found.items()}


def ends(clients: Clients, settings: PipelineSettings) -> dict[int, int]:
    places = [place(settings.statistics_topic, number) for number in range(PARTITIONS)]
    found = clients.consumer().end_offsets(places)
    return {one.partition: offset for one, offset in found.items()}


def collected(clients: Clients, settings: PipelineSettings, table: ResultTable) -> int:
    """Collect until all records are committed."""
    target = sum(ends(clients, settings).values())
    return collect(
        access(clients),
        settings.statistics_topic,
        settings.group,
        table,
        is_done=lambda: sum(committed(clients, settings).values()) == target,
    )


def test_all_records_are_read_and_the_last_value_is_stored(
    clients: Clients, settings: PipelineSettings, send: Send, table: ResultTable
) -> None:
    keys = [f"2013-01-{day:02} UA EWR" for day in range(1, 31)]
    send((key, 1) for key in keys)
    send([(keys[0], 40), (keys[0], 46)])

    count = collected(clients, settings, table)

    assert count == 32
    assert len(table) == 30
    assert table.stored == 32
    assert table.statistics()[UA] == Figures(46, 0, 0, 0, None, None)
    assert sum(each.flights for each in table.statistics().values()) == 46 + 29
    assert committed(clients, settings) == {
        partition: end for partition, end in ends(clients, settings).items() if end
    }


def test_next_run_continues_from_the_commit(
    clients: Clients, settings: PipelineSettings, send: Send, table: ResultTable
) -> None:
    send([("2013-01-01 UA EWR", 1)])
    assert collected(clients, settings, table) == 1
    send([("2013-01-01 UA EWR", 2), ("2013-01-02 UA EWR", 3)])

    assert collected(clients, settings, table) == 2

    assert [each.flights for each in table.statistics().values()] == [2, 3]


class PowerLostError(Exception):
    """Simulates a crash of the process."""


class MortalTable(ResultTable):
    """A table whose process crashes after storing records, before the commit."""

    def put(self, records: Iterable[tuple[str, str]]) -> None:
        super().put(records)
        raise PowerLostError


def test_uncommitted_records_are_read_again_and_count_once(
    clients: Clients, settings: PipelineSettings, send: Send, tmp_path: Path
) -> None:
    send((f"2013-01-{day:02} UA EWR", day) for day in range(1, 11))
    file = tmp_path / "mortal.sqlite"
    with MortalTable(file) as mortal, pytest.raises(PowerLostError):
        collected(clients, settings, mortal)
    assert committed(clients, settings) == {}

    with ResultTable(file) as table:
        assert len(table) > 0  # the records were stored
        assert collected(clients, settings, table) == 10
        assert table.stored > len(table) == 10
        found = sorted(each.flights for each in table.statistics().values())

    assert found == list(range(1, 11))


def test_existing_topics_fail(clients: Clients, settings: PipelineSettings) -> None:
    check_topics(access(clients), PipelineSettings(prefix="new-"))

    with pytest.raises(ConfigError) as caught:
        check_topics(access(clients), settings)

    names = [settings.statistics_topic, settings.flights_topic]
    assert f"topics: got {', '.join(names)}, expected none of them" in str(caught.value)
    assert f"another --prefix, or kclient topics delete {' '.join(names)}" in str(caught.value)


def test_statistics_topic_is_compacted(clients: Clients, settings: PipelineSettings) -> None:
    topic = ConfigResource(ConfigResourceType.TOPIC, settings.statistics_topic)
    configs = clients.admin().describe_configs(topic)

    assert configs[topic]["cleanup.policy"].value == "compact"


def test_partitions_of_a_killed_member_are_taken_over(
    clients: Clients, settings: PipelineSettings, send: Send, tmp_path: Path
) -> None:
    progress = Progress(io.StringIO())
    with ReportGroup(access(clients), settings, tmp_path, 30, progress) as group:
        group.await_members()
        send((f"2013-01-{day:02} UA EWR", day) for day in range(1, 31))
        group.await_end()

    with ResultTable(tmp_path / "statistics.sqlite") as table:
        assert len(table) == 30
    assert [event.mark for event in group.events if event.mark] == ["killed", "taken over"]
    assert group.samples[-1].collected == group.samples[-1].statistics == 30
    assert set(committed(clients, settings).values()) <= set(ends(clients, settings).values())


def test_member_that_ends_by_itself_fails_the_run(
    clients: Clients, settings: PipelineSettings, tmp_path: Path
) -> None:
    (tmp_path / "statistics.sqlite").mkdir()  # the members cannot open their table
    progress = Progress(io.StringIO())
    with (
        ReportGroup(access(clients), settings, tmp_path, 30, progress) as group,
        pytest.raises(KafkaError, match=r"(member-\d) ended by itself; see .*\1\.log"),
    ):
        group.await_members()
