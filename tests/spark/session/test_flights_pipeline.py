"""The flights pipeline, on some flights of the first quarter."""

from pathlib import Path

import pandas as pd
import pytest
from pyspark.sql import SparkSession

from examples.flights_pipeline import pipeline
from examples.flights_pipeline.flights import read_flights
from examples.flights_pipeline.kafka_access import KafkaAccess
from examples.flights_pipeline.pipeline_settings import PipelineSettings
from examples.flights_pipeline.writer import write_flights

FLIGHTS = 600


@pytest.mark.timeout(400)
def test_pipeline_statistics_match_the_source(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def march_twice(
        session: SparkSession, flights: pd.DataFrame, kafka: KafkaAccess, topic: str
    ) -> None:
        write_flights(session, flights, kafka, topic)
        if flights["scheduled"].dt.month.eq(3).all():
            write_flights(session, flights, kafka, topic)  # as retried tasks do

    def first_quarter(count: int) -> pd.DataFrame:
        return read_flights(4 * count).head(count)

    monkeypatch.setattr(pipeline, "read_flights", first_quarter)  # fewer micro-batches
    monkeypatch.setattr(pipeline, "write_flights", march_twice)
    settings = PipelineSettings(
        security="sasl_ssl",
        flights=FLIGHTS,
        prefix="pipeline-",
        directory=tmp_path,
    )

    result = pipeline.run(settings, spark)

    assert result.differences == ()
    assert result.matches
    assert result.flights == sum(each.flights for each in result.statistics.values()) == FLIGHTS
    assert result.records == len(result.statistics)
    assert "member-2 has taken over all partitions" in result.report.read_text()
    assert result.too_late == 0
    assert result.report.read_text().startswith("<!doctype html>")
    shown = capsys.readouterr().out
    assert "companion broker at 127.0.0.1:" in shown
    assert ", sasl_ssl\n" in shown
    assert "statistics match the source" in shown
