"""The Java client, by Apache Kafka's own tool for the performance of a producer."""

import resource
import tempfile
from pathlib import Path

from integration.benchmarks.meter import Meter
from integration.benchmarks.workload import Workload, distinct_values
from integration.harness.discovery import NEWEST, find_runtime
from integration.harness.kafka_tools import KafkaTools
from integration.harness.tool_output import producer_throughput

_TOOL = "org.apache.kafka.tools.ProducerPerformance"
# Heap and compilers as the tool's own script has them; the harness limits both for short runs.
_JVM = ("-XX:TieredStopAtLevel=4", "-Xmx512m")
_WARM_UP_PART = 3
_TIMEOUT_S = 120.0


def produce_in_transactions(load: Workload, meter: Meter) -> int:
    """Commits at intervals.

    A first run sends the records of the warm-up alone. Its CPU time is subtracted from that of the
    second, so that the start of Java and the compilation up to there do not count.
    """
    warm_up = load.records // _WARM_UP_PART
    with tempfile.TemporaryDirectory(prefix="kclient-bench-") as directory:
        values = Path(directory) / "values"
        values.write_bytes(b"\n".join(distinct_values(load.size)))
        tools = KafkaTools(
            find_runtime(NEWEST, Path(directory)), Path(directory), load.bootstrap, jvm_options=_JVM
        )
        arguments = [*_arguments(load), "--payload-file", str(values)]
        _, cpu_of_warm_up = _run(tools, [*arguments, *_counts(warm_up)])
        records = load.records - warm_up
        per_second, cpu = _run(tools, [*arguments, *_counts(records, warm_up)])
    timed = records - warm_up
    meter.note_process(2 * warm_up, timed / per_second, cpu - cpu_of_warm_up)
    return load.records


def _arguments(load: Workload) -> list[str]:
    properties = {
        "acks": load.acks,
        "linger.ms": load.linger_ms,
        "batch.size": load.batch_bytes,
        "compression.type": load.codec,
    }
    return [
        *("--bootstrap-server", load.bootstrap, "--topic", load.topic, "--throughput", "-1"),
        *("--transactional-id", load.topic, "--transaction-duration-ms", str(load.transaction_ms)),
        *("--command-property", *(f"{name}={value}" for name, value in properties.items())),
    ]


def _counts(records: int, warm_up: int = 0) -> list[str]:
    return ["--num-records", str(records), "--warmup-records", str(warm_up)]


def _run(tools: KafkaTools, arguments: list[str]) -> tuple[float, float]:
    """Returns the records per second after the warm-up, and the CPU seconds of the process."""
    before = _cpu_seconds_of_children()
    output = tools.run(_TOOL, arguments, timeout=_TIMEOUT_S)
    return (
        producer_throughput(output.stdout).records_per_second,
        _cpu_seconds_of_children() - before,
    )


def _cpu_seconds_of_children() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime
