"""One node of Apache Kafka: its directory and its process."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from integration.harness.kafka_runtime import JavaCommand, JavaProcess, KafkaRuntime
from integration.harness.wire_probe import served_apis
from tests.support.checks.waiting import HarnessError, wait_until

START_TIMEOUT = 60.0
STOP_TIMEOUT = 30.0
_LOG_TAIL = 4000


@dataclass(frozen=True, slots=True)
class _Logging:
    """Options that make a version log to standard output."""

    file_name: str
    jvm_option: str
    text: str


_LOG4J2 = _Logging(
    "log4j2.properties",
    "-Dlog4j2.configurationFile=",
    """appender.out.type=Console
appender.out.name=out
appender.out.layout.type=PatternLayout
appender.out.layout.pattern=[%d] %p %m (%c)%n
rootLogger.level=INFO
rootLogger.appenderRef.out.ref=out
""",
)
_RELOAD4J = _Logging(
    "log4j.properties",
    "-Dlog4j.configuration=file:",
    """log4j.rootLogger=INFO, out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=[%d] %p %m (%c)%n
""",
)


class KafkaNode:
    """A Kafka server and its directory, which is kept over restarts."""

    def __init__(
        self,
        runtime: KafkaRuntime,
        directory: Path,
        properties: Mapping[str, str],
        addresses: Mapping[str, str],
        heap_mb: int = 1024,
        jvm_options: Sequence[str] = (),
    ) -> None:
        """Describes a node.

        Args:
            runtime: what runs it.
            directory: where its configuration, its log and its data go; made on `start`.
            properties: server.properties; `log.dirs` is added.
            addresses: listener name -> "host:port"; `await_ready` connects to the first.
            heap_mb: Java's -Xmx.
            jvm_options: further options of the JVM.
        """
        self.node_id = int(properties["node.id"])
        self.directory = directory
        self.data_directory = directory / "data"
        self._runtime = runtime
        self._properties = {**properties, "log.dirs": str(self.data_directory)}
        self._addresses = dict(addresses)
        self._heap_mb = heap_mb
        self._jvm_options = tuple(jvm_options)
        self._process: JavaProcess | None = None
        self._starts = 0

    def address(self, listener: str = "PLAINTEXT") -> str:
        """Returns "host:port" of `listener`."""
        return self._addresses[listener]

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.exit_code() is None

    def configure(self) -> None:
        """Writes its configuration, for a storage that something else formats."""
        self.directory.mkdir(parents=True)
        lines = (f"{key}={value}\n" for key, value in self._properties.items())
        self._configuration.write_text("".join(lines))
        (self.directory / self._logging.file_name).write_text(self._logging.text)

    def format(self, cluster_id: str, extra: Sequence[str] = ()) -> None:
        """Writes its configuration and formats its storage, once and before the first start.

        Args:
            cluster_id: 22 characters, the same for all nodes of a cluster.
            extra: further options of StorageTool, such as `--add-scram`.
        """
        self.configure()
        arguments = ["format", "-t", cluster_id, "-c", str(self._configuration), *extra]
        command = JavaCommand(
            "kafka.tools.StorageTool",
            arguments,
            self.directory,
            "format",
            ("-XX:TieredStopAtLevel=1",),
        )
        if self._runtime.spawn(command).wait(START_TIMEOUT):
            output = command.stdout.read_text() + command.stderr.read_text()
            msg = f"node {self.node_id} could not be formatted:\n{output[-_LOG_TAIL:]}"
            raise HarnessError(msg)

    def launch(self) -> None:
        """Starts the process and returns at once: one of several waits for its peers."""
        if self.running:
            msg = f"node {self.node_id} runs already"
            raise HarnessError(msg)
        self._starts += 1
        self._process = self._runtime.spawn(self._command)

    def await_ready(self, timeout: float = START_TIMEOUT) -> None:
        """Returns when the node responds to an ApiVersions request.

        Raises:
            HarnessError: it ended, or did not respond in time; the end of its log is included.
        """
        try:
            wait_until(self._responds, f"node {self.node_id} responds at {self._probed}", timeout)
        except HarnessError as error:
            msg = f"{error}\n{self.log_text()[-_LOG_TAIL:]}"
            raise HarnessError(msg) from None

    def start(self) -> None:
        self.launch()
        self.await_ready()

    def stop(self) -> None:
        """Ends it in order: leadership moves, logs are flushed and marked as clean."""
        if self._process is not None:
            self._process.terminate()
            self._process.wait(STOP_TIMEOUT)

    def kill(self) -> None:
        """Ends it as a crash would."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(STOP_TIMEOUT)

    def restart(self) -> None:
        self.stop()
        self.start()

    def suspend(self) -> None:
        """Suspends the process: connections stay open without responses."""
        if self._process is not None:
            self._process.suspend()

    def resume(self) -> None:
        if self._process is not None:
            self._process.resume()

    def cpu_seconds(self) -> float:
        """Returns the CPU time of the process since its start; 0 where that cannot be known."""
        return self._process.cpu_seconds() if self._process is not None and self.running else 0.0

    def log_text(self) -> str:
        """Returns what the server wrote since its last start."""
        if not self._starts:
            return ""
        parts = (self._command.stdout, self._command.stderr)
        return "".join(part.read_text(errors="replace") for part in parts if part.exists())

    @property
    def _probed(self) -> str:
        return next(iter(self._addresses.values()))

    @property
    def _configuration(self) -> Path:
        return self.directory / "server.properties"

    @property
    def _logging(self) -> _Logging:
        return _LOG4J2 if self._runtime.version >= (4,) else _RELOAD4J

    @property
    def _command(self) -> JavaCommand:
        logging = f"{self._logging.jvm_option}{self.directory / self._logging.file_name}"
        options = [f"-Xmx{self._heap_mb}m", "-XX:+UseSerialGC", logging, *self._jvm_options]
        return JavaCommand(
            "kafka.Kafka",
            [str(self._configuration)],
            self.directory,
            f"server-{self._starts}",
            options,
        )

    def _responds(self) -> bool:
        if not self.running:
            msg = f"node {self.node_id} ended while it started"
            raise HarnessError(msg)
        try:
            return bool(served_apis(self._probed))
        except OSError:
            return False
