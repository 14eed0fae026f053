"""The example pipeline on a cluster of two workers and Apache Kafka."""

import os
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from examples.flights_pipeline.pipeline import run
from examples.flights_pipeline.pipeline_settings import PipelineSettings
from integration.harness.kafka_tools import KafkaTools
from integration.harness.running_kafka import RunningKafka
from integration.harness.spark_standalone import StandaloneCluster
from tests.support.clients.foreign_confluent import ConfluentClient

FLIGHTS = 3_000


@pytest.mark.campaign
def test_pipeline_statistics_match_the_source(
    spark: SparkSession,
    standalone: StandaloneCluster,
    kafka: RunningKafka,
    foreign: ConfluentClient,
    tools: KafkaTools,
    tmp_path: Path,
) -> None:
    settings = PipelineSettings(
        bootstrap=kafka.bootstrap,
        master=standalone.master_url,
        flights=FLIGHTS,
        prefix=f"cluster-{os.getpid()}-",
        directory=tmp_path,
    )
    result = run(settings, spark)
    assert result.matches, result.differences
    assert result.too_late == 0
    # Check with another client and with Kafka's own tool.
    flights = foreign.read_all(settings.flights_topic)
    assert len({one.key for one in flights}) == FLIGHTS + 1  # and the end mark
    assert sum(figures.flights for figures in result.statistics.values()) == FLIGHTS
    statistics = foreign.read_all(settings.statistics_topic)
    assert len({one.key for one in statistics}) == len(result.statistics)
    assert {row.lag for row in tools.describe_group(settings.group)} == {0}
    assert "<svg" in result.report.read_text()
