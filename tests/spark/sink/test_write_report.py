"""Reports of tasks and jobs."""

from kclient.spark.sink.write_report import TaskIdentity, TaskReport, WriteReport


def test_write_report_sums_up_the_tasks() -> None:
    reports = [
        TaskReport(TaskIdentity(2), rows=5, bytes=50),
        TaskReport(TaskIdentity(0, attempt=1), rows=7, bytes=70),
        TaskReport(TaskIdentity(1), rows=0, bytes=0),
    ]

    assert WriteReport.of(reports) == WriteReport(rows=12, bytes=120, partitions={0: 7, 1: 0, 2: 5})


def test_identity_names_micro_batch_partition_and_attempt() -> None:
    assert str(TaskIdentity(3, 1)) == "Spark partition 3, attempt 1"
    assert str(TaskIdentity(3, 0, batch_id=0)) == "batch 0, Spark partition 3, attempt 0"


def test_report_of_no_tasks_is_empty() -> None:
    assert WriteReport.of([]) == WriteReport(rows=0, bytes=0, partitions={})
