"""The notebook example in the installed Spark; ``make spark-versions`` runs it in all versions."""

import runpy
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

EXAMPLE = Path(__file__).parents[3] / "examples" / "spark_notebook.py"


@pytest.mark.campaign
@pytest.mark.timeout(400)
def test_notebook_runs_to_its_last_cell(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    zone = str(spark.conf.get("spark.sql.session.timeZone"))
    monkeypatch.setattr(SparkSession, "stop", lambda _: None)  # the session is shared
    try:
        runpy.run_path(str(EXAMPLE))
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone)
        spark.sparkContext.setLogLevel("FATAL")
    assert capsys.readouterr().out.endswith("all cells passed\n")
