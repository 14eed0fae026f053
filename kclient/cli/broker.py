"""``kclient broker``: runs one broker until SIGTERM or SIGINT."""

import argparse
import resource
import signal
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

from kclient.broker.metadata.meta_properties import MetaPropertiesEnsemble
from kclient.broker.server.broker_config import BROKER_CONFIG, BrokerConfig
from kclient.broker.server.broker_server import BrokerServer
from kclient.broker.server.server_properties import load_server_properties
from kclient.cli.common_options import key_values
from kclient.cli.examples import add_examples
from kclient.cli.request_log import RequestLog
from kclient.common.errors import ConfigError, IllegalStateError
from kclient.common.system_files import SystemFiles
from kclient.network.system_runtime import system_runtime

_REBALANCE_DELAY = "group.initial.rebalance.delay.ms"
_NO_DELAY_NOTE = (
    f"{_REBALANCE_DELAY}=0: the first member of a group does not wait for others (Apache Kafka: "
    f"3000; set it with --config {_REBALANCE_DELAY}=3000)"
)

_DEFAULT_ADDRESS = "127.0.0.1:9092"
_SIGNALS = {signal.SIGTERM, signal.SIGINT}


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``kclient broker``."""
    parser.description = __doc__
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--data-dir", metavar="D", help="directory for all data")
    source.add_argument(
        "--properties",
        type=Path,
        metavar="FILE",
        help="server.properties of Kafka's form; its directory is formatted by storage format",
    )
    parser.add_argument(
        "--listen",
        metavar="HOST:PORT",
        help="address to listen on, or several as NAME://HOST:PORT,…; port 0 chooses a free one "
        f"(default with --data-dir: {_DEFAULT_ADDRESS})",
    )
    parser.add_argument(
        "--config",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="a broker config by Kafka's name, such as num.partitions=3; may be repeated",
    )
    parser.add_argument(
        "--request-log",
        type=Path,
        metavar="FILE",
        help="append a line of JSON for each request to this file: the fields of Kafka's request "
        "log without the bodies, and receivedNs, on the machine's monotonic clock",
    )
    add_examples(
        parser,
        "kclient broker --data-dir ./data --listen 127.0.0.1:9092",
        "kclient broker --data-dir ./data --listen 127.0.0.1:9092 --config num.partitions=3",
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Serve until SIGTERM or SIGINT, then shut down cleanly."""
    given = key_values("--config", options.config)
    without_delay = options.properties is None and not _has_delay(given)
    if options.properties is None:
        config = _config_of_options(options, given, without_delay=without_delay)
    else:
        config = _config_of_file(options, given)
        _check_formatted(config)
    broker = BrokerServer(config, system_runtime())
    _raise_descriptor_limit()
    # Threads inherit the mask, so that no thread of the broker receives the signal before sigwait.
    previous_mask = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    try:
        with ExitStack() as stack:  # closes the log after the broker has stopped
            if options.request_log is not None:
                log = stack.enter_context(RequestLog(options.request_log))
                broker.observe_requests(log.write)
            return _serve(broker, without_delay=without_delay)
    finally:
        while signal.sigtimedwait(_SIGNALS, 0) is not None:
            pass  # discard signals that arrived during the shutdown
        signal.pthread_sigmask(signal.SIG_SETMASK, previous_mask)


def _has_delay(given: Mapping[str, object]) -> bool:
    return _REBALANCE_DELAY in {name.replace("_", ".") for name in given}


def _config_of_options(
    options: argparse.Namespace, given: Mapping[str, object], *, without_delay: bool
) -> BrokerConfig:
    address = _DEFAULT_ADDRESS if options.listen is None else options.listen
    settings = {"log.dir": options.data_dir, "listeners": address}
    delay = {_REBALANCE_DELAY: "0"} if without_delay else {}
    return BROKER_CONFIG.parse({**settings, **delay, **given})


def _config_of_file(options: argparse.Namespace, given: Mapping[str, object]) -> BrokerConfig:
    if options.listen is not None:
        raise ConfigError(
            f"--listen: got {options.listen!r:.80}, expected none with --properties; set "
            "listeners in the file or by --config"
        )
    return load_server_properties(options.properties, given)


def _check_formatted(config: BrokerConfig) -> None:
    """Check that the directory is formatted for this node.

    Raises:
        IllegalStateError: It is not formatted, or belongs to another cluster or node.
    """
    try:
        ensemble = MetaPropertiesEnsemble.load(SystemFiles(), [config.data_dir])
        ensemble.require_formatted()
        ensemble.verify(config.cluster_id, config.node_id)
    except ConfigError as error:
        raise IllegalStateError(str(error)) from error


_FAILURE_CHECK_SECONDS = 1.0
_SIGNAL_CHECK_MS = 50.0


def _serve(broker: BrokerServer, *, without_delay: bool) -> int:
    broker.start()
    try:
        if not _await_running(broker):
            return 0
        first, *others = broker.endpoints
        print(f"bootstrap.servers={first.address}", flush=True)
        for endpoint in others:
            print(f"{endpoint.name}: bootstrap.servers={endpoint.address}", flush=True)
        if without_delay:
            print(_NO_DELAY_NOTE, flush=True)
        while signal.sigtimedwait(_SIGNALS, _FAILURE_CHECK_SECONDS) is None:
            if broker.failure is not None:
                return 1  # the reason is logged
    except Exception:
        if broker.failure is None:
            raise
        return 1  # the reason is logged
    finally:
        broker.stop()
    return 0


def _await_running(broker: BrokerServer) -> bool:
    """Wait until the broker is active; return False if a signal comes first.

    Raises:
        Exception: The broker has ended, with this failure.
    """
    while not broker.await_running(_SIGNAL_CHECK_MS):
        if signal.sigtimedwait(_SIGNALS, 0) is not None:
            return False
    return True


def _raise_descriptor_limit() -> None:
    """Raise the limit of file descriptors to the maximum: each partition needs several."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and soft < hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
