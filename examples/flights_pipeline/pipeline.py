"""The whole pipeline, step by step."""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import datetime
from pathlib import Path

import pandas as pd
from pyspark.sql import SparkSession
from pyspark.sql.streaming.listener import StreamingQueryProgress

from examples.flights_pipeline.check import differences, expected_statistics
from examples.flights_pipeline.figures import Statistics
from examples.flights_pipeline.flights import months, read_flights
from examples.flights_pipeline.group import ReportGroup
from examples.flights_pipeline.kafka_access import KafkaAccess, companion_broker
from examples.flights_pipeline.pipeline_result import PipelineResult
from examples.flights_pipeline.pipeline_settings import PipelineSettings
from examples.flights_pipeline.progress import BatchLines, Progress
from examples.flights_pipeline.report.html_report import html_report
from examples.flights_pipeline.report.summary import Summary
from examples.flights_pipeline.report.text_report import text_report
from examples.flights_pipeline.result_table import ResultTable
from examples.flights_pipeline.session import separate, spark_session
from examples.flights_pipeline.statistics import (
    END_MARK_AFTER,
    daily_statistics,
    start_query,
    stream_of_flights,
)
from examples.flights_pipeline.story import Batch, Story
from examples.flights_pipeline.topics import check_topics, create_topics
from examples.flights_pipeline.writer import write_end_mark, write_flights
from kclient.cli.demo.flights import airline_names
from kclient.spark import check_environment

SHOWN = 10  # differences in the verdict


def run(settings: PipelineSettings, spark: SparkSession | None = None) -> PipelineResult:
    """Run the pipeline.

    Args:
        settings: Settings of the run.
        spark: A session to use, which is not stopped; None creates one for the run.

    Raises:
        ConfigError: There is no Java, or no flights, or the topics exist already.
        WorkerEnvironmentError: Spark's workers lack something.
        KafkaError: A request to Kafka failed.
        PySparkException: A job or the query failed.
    """
    progress = Progress()
    with ExitStack() as ending:
        kafka = ending.enter_context(connected(settings, progress))
        check_topics(kafka, settings)
        if spark is None:
            spark = ending.enter_context(spark_session(settings, progress))
        session = separate(spark)
        progress.say("workers", str(check_environment(session, conf=kafka.options)))
        create_topics(kafka, settings)
        flights = read_flights(settings.flights)
        progress.say("source", f"{len(flights):,} flights scheduled from New York in 2013")
        expected = expected_statistics(flights)
        directory = settings.directory or Path(tempfile.mkdtemp(prefix="kclient-flights-"))
        checkpoint = settings.checkpoint or str(directory / "checkpoint")
        group = ending.enter_context(
            ReportGroup(kafka, settings, directory, len(expected), progress)
        )
        batches = compute(session, flights, kafka, settings, checkpoint, progress, group)
        too_late = _too_late(batches)
        progress.say("stream", f"stopped; {too_late} rows were too late to be counted")
        group.await_end()
        with ResultTable(directory / "statistics.sqlite") as table:
            found, stored = table.statistics(), table.stored
        records = group.samples[-1].statistics
        progress.say(
            "group", f"{records:,} records committed, {stored - records:,} of them read again"
        )
    story = Story(group.samples, group.events, _batches(batches, progress), stored - records)
    wrong = differences(found, expected)
    progress.say("check", verdict(found, wrong))
    report = settings.report or directory / "report.html"
    write_report(found, wrong, story, report, progress)
    if settings.directory is None:
        progress.say("", f"to remove all files: rm -r {directory}")
    return PipelineResult(
        flights=len(flights),
        statistics=found,
        records=records,
        read_again=story.read_again,
        batches=len({batch.batchId for batch in batches}),
        too_late=too_late,
        differences=tuple(wrong),
        report=report,
        seconds=progress.seconds,
    )


@contextmanager
def connected(settings: PipelineSettings, progress: Progress) -> Iterator[KafkaAccess]:
    """Yield the access to Kafka: to the given one, or to a broker for this run."""
    if settings.bootstrap is not None:
        progress.say("Kafka", settings.bootstrap)
        yield KafkaAccess({"bootstrap.servers": settings.bootstrap})
        return
    with companion_broker(settings.security) as kafka:
        progress.say("Kafka", f"companion broker at {kafka.bootstrap}, {settings.security}")
        yield kafka


def compute(
    session: SparkSession,
    flights: pd.DataFrame,
    kafka: KafkaAccess,
    settings: PipelineSettings,
    checkpoint: str,
    progress: Progress,
    group: ReportGroup,
) -> list[StreamingQueryProgress]:
    """Start the query, write the flights while it runs, and stop it after the last windows."""
    topic = settings.flights_topic
    statistics = daily_statistics(stream_of_flights(session, kafka, topic, settings.query_group))
    lines = BatchLines(progress)
    session.streams.addListener(lines)
    query = start_query(statistics, kafka, settings.statistics_topic, checkpoint)
    try:
        query.processAllAvailable()  # no flights yet, but the query is running
        progress.say("stream", "the query is waiting for flights")
        group.await_members()
        group.note("Spark writes the first flights")
        for month, some in months(flights):
            started = progress.seconds
            write_flights(session, some, kafka, topic)
            rate = len(some) / (progress.seconds - started)
            progress.say("write", f"{month}   {len(some):>7,} flights, {rate:>7,.0f} rows/s")
        group.note("Spark has written the last flights", "all written")
        query.processAllAvailable()  # the flights are read
        write_end_mark(flights["scheduled"].max(), END_MARK_AFTER, kafka, topic)
        query.processAllAvailable()  # the last windows are written
        group.note("the query has written the last statistics")
        return list(query.recentProgress)
    finally:
        query.stop()
        lines.await_end()
        session.streams.removeListener(lines)


def verdict(found: Statistics, wrong: Sequence[str]) -> str:
    """Return a text that lists the wrong figures, if there are any."""
    if not wrong:
        return f"all {len(found):,} statistics match the source"
    rest = [f"... and {len(wrong) - SHOWN:,} more"] if len(wrong) > SHOWN else []
    return "\n".join(
        [f"figures that do NOT match the source: {len(wrong):,}", *wrong[:SHOWN], *rest]
    )


def write_report(
    found: Statistics, wrong: Sequence[str], story: Story, file: Path, progress: Progress
) -> None:
    """Show the report and write it into a file."""
    summary = Summary.of(found)
    names = airline_names()
    for line in text_report(summary, names):
        progress.write(line)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(html_report(summary, names, verdict(found, wrong), story), encoding="utf-8")
    progress.say("report", str(file))


def _too_late(batches: list[StreamingQueryProgress]) -> int:
    """Return the number of rows that the watermark dropped."""
    operators = [operator for batch in batches for operator in batch.stateOperators]
    return sum(operator.numRowsDroppedByWatermark for operator in operators)


def _batches(reported: list[StreamingQueryProgress], progress: Progress) -> list[Batch]:
    """Return the micro-batches with rows or results; Spark also reports idle triggers."""
    found: dict[int, Batch] = {}
    for one in reported:
        watermark = str(one.eventTime.get("watermark", "1970"))[:10]
        started = datetime.fromisoformat(one.timestamp).timestamp() - progress.started_at
        batch = Batch(
            one.batchId,
            started,
            one.batchDuration / 1000,
            one.numInputRows,
            "" if watermark.startswith("1970") else watermark,
        )
        # An idle trigger is reported with the number of the micro-batch that follows it.
        found[batch.number] = max(batch, found.get(batch.number, batch), key=_work)
    return list(found.values())


def _work(batch: Batch) -> tuple[int, float]:
    return batch.rows, batch.seconds
