"""Python blocks of the README and the Spark pages, in the session of all Spark tests."""

import re
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.support.checks.document_blocks import code_blocks
from tests.support.clients.clients import Clients
from tests.support.processes.child_process import ROOT

PAGES = [
    "README.md",
    *(f"docs/how-to/{name}.md" for name in ("spark-read", "spark-write", "spark-environment")),
]
BROKERS = re.compile(r"(?:localhost|broker-\d):9092(?:,broker-\d:9092)*")
CHECKPOINT = "/data/checkpoints"


def prepared_names(spark: SparkSession, clients: Clients) -> dict[str, Any]:
    """Return the names that the pages use without a definition: a session, a table, a stream."""
    clients.fill("orders", 3)
    stream = (
        spark.readStream.format("kclient")
        .option("kafka.bootstrap.servers", clients.bootstrap)
        .option("subscribe", "orders")
        .option("startingOffsets", "earliest")
        .load()
    )
    table = spark.createDataFrame([("1", "{}", "{}")], "id string, json string, value string")
    return {"spark": spark, "df": table, "stream": stream}


@pytest.mark.timeout(400)  # minutes on a busy machine, seconds on a quiet one
@pytest.mark.parametrize("page", PAGES)
def test_spark_blocks_run_as_pasted(
    page: str,
    spark: SparkSession,
    clients: Clients,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for topic in {"orders", "totals", "copies"} - {
        one.name for one in clients.admin().list_topics()
    }:
        clients.topic(name=topic)
    blocks = [
        block
        for block in code_blocks(ROOT / page)
        if block.language == "python" and block.note == "tests/spark/session/test_documents.py"
    ]
    assert blocks
    monkeypatch.chdir(tmp_path)
    names = prepared_names(spark, clients)
    try:
        if any("lag(query" in block.code for block in blocks):
            query = names["stream"].writeStream.format("memory").queryName("shown").start()
            query.processAllAvailable()
            names["query"] = query
        for block in blocks:
            code = BROKERS.sub(clients.bootstrap, block.code)
            exec(code.replace(CHECKPOINT, str(tmp_path)), names)  # noqa: S102 (our own pages)
            for query in spark.streams.active:
                query.processAllAvailable()
    finally:
        for query in spark.streams.active:
            query.stop()
