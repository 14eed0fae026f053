"""Apache Kafka's own tools, run by class, with their output parsed."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from integration.harness.kafka_runtime import JavaCommand, KafkaRuntime
from integration.harness.running_tool import RunningTool
from integration.harness.tool_output import (
    FIELD,
    HEADER,
    LINE,
    NULL,
    DumpedBatch,
    GroupOffset,
    GroupState,
    PartitionDescription,
    Throughput,
    console_records,
    consumer_throughput,
    dumped_batches,
    group_offsets,
    group_state,
    partition_descriptions,
    producer_throughput,
    table_rows,
    topic_offsets,
)
from tests.support.checks.waiting import HarnessError
from tests.support.clients.foreign_record import ForeignRecord

_TOOLS = "org.apache.kafka.tools."
_TIMEOUT = 60.0
# A short run is over before the optimising compiler pays.
_QUICK_START = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx256m")
_PRINTED = ("timestamp", "partition", "offset", "headers", "key")


@dataclass(frozen=True, slots=True)
class ToolOutput:
    """What a tool wrote before it ended well."""

    stdout: bytes
    stderr: str


@dataclass(frozen=True, slots=True)
class _Dialect:
    """Names that changed between versions."""

    console_producer: str
    dump_log: str
    reader_property: str
    formatter_property: str
    producer_property: str
    consumer_property: str
    producer_config: str
    consumer_config: str
    performance_property: str
    performance_records: str


_KAFKA_3 = _Dialect(
    console_producer="kafka.tools.ConsoleProducer",
    dump_log="kafka.tools.DumpLogSegments",
    reader_property="--property",
    formatter_property="--property",
    producer_property="--producer-property",
    consumer_property="--consumer-property",
    producer_config="--producer.config",
    consumer_config="--consumer.config",
    performance_property="--producer-props",
    performance_records="--messages",
)
_KAFKA_4 = _Dialect(
    console_producer=f"{_TOOLS}ConsoleProducer",
    dump_log=f"{_TOOLS}DumpLogSegments",
    reader_property="--reader-property",
    formatter_property="--formatter-property",
    producer_property="--command-property",
    consumer_property="--command-property",
    producer_config="--command-config",
    consumer_config="--command-config",
    performance_property="--command-property",
    performance_records="--num-records",
)


class KafkaTools:
    """The tools of one version, pointed at one cluster that speaks Kafka's protocol.

    Each call starts a Java process, which costs 0.5 to 1.5 s. One that does not end in time is
    killed and raises HarnessError, and so does one that fails, with its output.
    """

    def __init__(
        self,
        runtime: KafkaRuntime,
        directory: Path,
        bootstrap: str,
        client_properties: Mapping[str, str] | None = None,
        jvm_options: Sequence[str] = (),
    ) -> None:
        """Describes the tools.

        Args:
            runtime: what runs them.
            directory: where their files go; it exists and the runtime can see it.
            bootstrap: "host:port[,host:port]".
            client_properties: given to every tool, such as security.protocol and sasl.jaas.config.
            jvm_options: given to every tool, such as -Dname=value.
        """
        self.bootstrap = bootstrap
        self._runtime = runtime
        self._directory = directory
        self._client_properties = dict(client_properties or {})
        self._jvm_options = (*_QUICK_START, *jvm_options)
        self._dialect = _KAFKA_4 if runtime.version >= (4, 2) else _KAFKA_3
        self._numbers = count(1)
        self._running: list[RunningTool] = []

    def close(self) -> None:
        """Ends the verifiable clients that still run, as a test that failed leaves them."""
        for tool in self._running:
            tool.kill()
        self._running.clear()

    def run(
        self,
        main_class: str,
        arguments: Sequence[str],
        stdin: bytes = b"",
        timeout: float = _TIMEOUT,
    ) -> ToolOutput:
        """Runs any class to its end; `arguments` are the tool's own."""
        command = self._command(main_class, arguments)
        command.stdin.write_bytes(stdin)
        process = self._runtime.spawn(command)
        try:
            code = process.wait(timeout)
        except BaseException:
            process.kill()
            process.wait(10)
            raise
        output = ToolOutput(command.stdout.read_bytes(), command.stderr.read_text(errors="replace"))
        if code:
            text = output.stdout.decode(errors="replace")[-1500:] + output.stderr[-1500:]
            msg = f"{main_class} {' '.join(arguments)} ended with {code}:\n{text}"
            raise HarnessError(msg)
        return output

    # -- records

    def produce(
        self,
        topic: str,
        records: Iterable[ForeignRecord],
        properties: Mapping[str, str] | None = None,
    ) -> None:
        """Sends by the console producer; no tab, comma, colon or line end may be in the records.

        The tool knows no partition and no timestamp; `properties` are the producer's.
        """
        dialect = self._dialect
        arguments = ["--topic", topic, *self._connect(dialect.producer_config)]
        reader = {"parse.key": "true", "parse.headers": "true", "null.marker": NULL}
        arguments += _pairs(dialect.reader_property, reader)
        arguments += _pairs(dialect.producer_property, properties or {})
        lines = b"".join(_console_line(record) for record in records)
        self.run(dialect.console_producer, arguments, lines)

    def consume(
        self,
        topic: str,
        records: int,
        *,
        group: str | None = None,
        properties: Mapping[str, str] | None = None,
        timeout: float = 30,
    ) -> list[ForeignRecord]:
        """Reads `records` records from the start by the console consumer; fewer are an error."""
        dialect = self._dialect
        arguments = ["--topic", topic, "--from-beginning", "--max-messages", str(records)]
        arguments += [
            "--timeout-ms",
            str(int(timeout * 1000)),
            *self._connect(dialect.consumer_config),
        ]
        arguments += ["--group", group] if group else []
        formatter = {f"print.{name}": "true" for name in _PRINTED}
        formatter |= {"key.separator": FIELD, "headers.separator": HEADER}
        formatter |= {"line.separator": LINE, "null.literal": NULL}
        arguments += _pairs(dialect.formatter_property, formatter)
        arguments += _pairs(dialect.consumer_property, properties or {})
        output = self.run(f"{_TOOLS}consumer.ConsoleConsumer", arguments, timeout=timeout + 15)
        found = console_records(output.stdout)
        if len(found) != records:
            msg = f"console consumer: got {len(found)} of {records} records: {output.stderr}"
            raise HarnessError(msg)
        return found

    def verifiable_producer(
        self, topic: str, records: int, acks: int = -1, per_second: int = -1
    ) -> RunningTool:
        """Starts a producer of the values "0", "1", …; its events are producer_send_success …"""
        arguments = ["--topic", topic, "--max-messages", str(records), "--acks", str(acks)]
        arguments += ["--throughput", str(per_second)]
        return self._spawn(
            "VerifiableProducer", [*arguments, *self._connect(self._dialect.producer_config)]
        )

    def verifiable_consumer(
        self, topic: str, group: str, options: Sequence[str] = ()
    ) -> RunningTool:
        """Starts a member of `group`; its events are partitions_assigned, record_data …"""
        arguments = ["--topic", topic, "--group-id", group, "--verbose", *options]
        return self._spawn(
            "VerifiableConsumer", [*arguments, *self._connect(self._dialect.consumer_config)]
        )

    # -- topics, offsets, groups

    def create_topic(
        self, topic: str, partitions: int = 1, configs: Mapping[str, str] | None = None
    ) -> None:
        arguments = ["--create", "--topic", topic, "--partitions", str(partitions)]
        self._admin("TopicCommand", [*arguments, *_pairs("--config", configs or {})])

    def topics(self) -> list[str]:
        return self._admin("TopicCommand", ["--list"]).stdout.decode().split()

    def describe_topic(self, topic: str) -> list[PartitionDescription]:
        output = self._admin("TopicCommand", ["--describe", "--topic", topic])
        return partition_descriptions(output.stdout)

    def offsets(self, topic: str, time: str = "latest") -> dict[int, int]:
        """Returns partition -> offset at `time`: latest, earliest, max-timestamp or ms."""
        return topic_offsets(
            self._admin("GetOffsetShell", ["--topic", topic, "--time", time]).stdout
        )

    def groups(self) -> list[str]:
        return (
            self._admin("consumer.group.ConsumerGroupCommand", ["--list"]).stdout.decode().split()
        )

    def describe_group(self, group: str) -> list[GroupOffset]:
        arguments = ["--describe", "--group", group]
        return group_offsets(self._admin("consumer.group.ConsumerGroupCommand", arguments).stdout)

    def group_state(self, group: str) -> GroupState:
        arguments = ["--describe", "--group", group, "--state"]
        return group_state(self._admin("consumer.group.ConsumerGroupCommand", arguments).stdout)

    # -- transactions

    def transactions(self, *arguments: str) -> list[dict[str, str]]:
        """Runs an action of kafka-transactions, such as "list"; returns the rows of its table."""
        return table_rows(self._admin("TransactionsCommand", arguments).stdout)

    # -- files and speed

    def dump_log(self, *files: Path, payload: bool = False) -> list[DumpedBatch]:
        """Reads log segments and every record in them; the runtime has to see the files."""
        arguments = ["--files", ",".join(str(file) for file in files), "--deep-iteration"]
        arguments += ["--print-data-log"] if payload else []
        return dumped_batches(self.run(self._dialect.dump_log, arguments).stdout)

    def producer_performance(
        self, topic: str, records: int, size: int, properties: Mapping[str, str] | None = None
    ) -> Throughput:
        given = {
            "bootstrap.servers": self.bootstrap,
            **self._client_properties,
            **(properties or {}),
        }
        arguments = ["--topic", topic, "--num-records", str(records), "--record-size", str(size)]
        arguments += ["--throughput", "-1", self._dialect.performance_property]
        arguments += [f"{name}={value}" for name, value in given.items()]
        return producer_throughput(self.run(f"{_TOOLS}ProducerPerformance", arguments).stdout)

    def consumer_performance(self, topic: str, records: int) -> Throughput:
        arguments = ["--topic", topic, self._dialect.performance_records, str(records)]
        arguments += self._connect(self._dialect.consumer_config)
        return consumer_throughput(self.run(f"{_TOOLS}ConsumerPerformance", arguments).stdout)

    # --

    def _admin(self, tool: str, arguments: Sequence[str]) -> ToolOutput:
        return self.run(f"{_TOOLS}{tool}", [*self._connect("--command-config"), *arguments])

    def _spawn(self, tool: str, arguments: Sequence[str]) -> RunningTool:
        command = self._command(f"{_TOOLS}{tool}", arguments)
        running = RunningTool(command, self._runtime.spawn(command))
        self._running.append(running)
        return running

    def _command(self, main_class: str, arguments: Sequence[str]) -> JavaCommand:
        name = f"{next(self._numbers):03}-{main_class.rpartition('.')[2]}"
        return JavaCommand(main_class, arguments, self._directory, name, self._jvm_options)

    def _connect(self, config_option: str) -> list[str]:
        arguments = ["--bootstrap-server", self.bootstrap]
        if self._client_properties:
            path = self._directory / "client.properties"
            lines = (f"{name}={value}\n" for name, value in self._client_properties.items())
            path.write_text("".join(lines))
            arguments += [config_option, str(path)]
        return arguments


def _pairs(option: str, values: Mapping[str, str]) -> list[str]:
    return [part for name, value in values.items() for part in (option, f"{name}={value}")]


def _console_line(record: ForeignRecord) -> bytes:
    null = NULL.encode()
    headers = b",".join(
        name.encode() + b":" + (null if value is None else value) for name, value in record.headers
    )
    fields = (headers or null, record.key, record.value)
    return b"\t".join(null if field is None else field for field in fields) + b"\n"
