"""Explanation of job failures by the environment of the workers."""

import pytest

from kclient.spark.common.errors import WorkerEnvironmentError
from kclient.spark.environment.worker_failures import explain, explain_worker_errors
from tests.support.checks.travelled import travelled


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("ModuleNotFoundError: No module named 'kclient'", "no package 'kclient'"),
        ("/usr/bin/python3: No module named pyspark", "no package 'pyspark'"),
        ("No module named 'theirs'\nNo module named 'pyarrow.lib'", "no package 'pyarrow'"),
        (
            'java.io.IOException: Cannot run program "python9": error=2, No such file',
            "cannot start 'python9': set PYSPARK_PYTHON",
        ),
        (
            "Python in worker has different version: 3.9 than that in driver: 3.11, PySpark",
            "run Python 3.9, the driver 3.11",
        ),
        ("Failed to find the data source: kclient. Make sure", "addPyFile has no effect"),
        ("Python worker exited unexpectedly (crashed)", "stderr of the executor"),
    ],
)
def test_error_of_a_failed_job_is_explained(text: str, words: str) -> None:
    explanation = explain(f"Job aborted\n{text}\n at org.apache")
    assert explanation is not None
    assert words in explanation


def test_other_errors_are_not_changed() -> None:
    with (
        pytest.raises(ValueError, match="No module named 'theirs'"),
        explain_worker_errors("write_partitions"),
    ):
        raise ValueError("No module named 'theirs'")


def test_worker_environment_error_keeps_cause_and_pickles() -> None:
    with pytest.raises(WorkerEnvironmentError) as caught, explain_worker_errors("write_partitions"):
        raise ValueError("No module named 'lz4'")
    assert str(caught.value).startswith("write_partitions: the workers' Python has no package")
    assert "check_environment(spark)" in str(caught.value)
    assert isinstance(caught.value.__cause__, ValueError)
    there = travelled(caught.value)
    assert str(there) == str(caught.value)
    assert there.problems == caught.value.problems != (str(there),)
