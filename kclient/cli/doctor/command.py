"""``kclient doctor``: checks the way to a cluster step by step, with a remedy for each problem."""

import argparse
from collections.abc import Mapping

from kclient.admin.admin_core import ADMIN_CONFIG, AdminConfig
from kclient.cli.common_options import (
    add_connection_options,
    client_options,
    producer_options,
    timeout_seconds,
)
from kclient.cli.doctor.addresses import AddressChecks
from kclient.cli.doctor.cluster_checks import ClusterChecks
from kclient.cli.doctor.probe import Probe
from kclient.cli.doctor.report import Findings, Status
from kclient.cli.examples import add_examples
from kclient.cli.output import add_json_option
from kclient.common.errors import ConfigError
from kclient.common.runtime import Address
from kclient.consumer.consumer_config import CONSUMER_CONFIG
from kclient.producer.producer_config import PRODUCER_CONFIG

_REMEDY = "check the name and the port of bootstrap.servers, and firewalls on the way"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``kclient doctor``."""
    parser.description = (
        "Check the way to a cluster: DNS, TCP, TLS, SASL, ApiVersions, metadata and "
        "advertised addresses of brokers; with --probe also clocks, produce and consume. Each "
        "problem is shown with its remedy. The exit status is 1 if a check failed."
    )
    parser.add_argument(
        "--probe",
        action="store_true",
        help="produce a record and consume it, in a temporary topic that is deleted afterwards",
    )
    parser.add_argument("--topic", help="probe this topic instead; the record remains there")
    add_json_option(parser)
    add_connection_options(parser)
    add_examples(
        parser,
        "kclient doctor",
        "kclient doctor --probe",
        "kclient doctor --topic payments --json",
    )
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    settings = client_options(options, ADMIN_CONFIG)
    config = ADMIN_CONFIG.parse(settings)
    if not config.bootstrap_servers:
        raise ConfigError(
            "doctor: got bootstrap.controllers, expected bootstrap.servers; it checks the way that "
            "producers and consumers take"
        )
    report = Findings(options)
    addresses = AddressChecks(report, config, timeout_seconds(options))
    reached = [each for each in config.bootstrap_servers if addresses.run(each, _REMEDY)]
    if _check_cluster(options, report, settings, config, addresses, reached):
        _probe(options, report)
    return 1 if report.failed else 0


def _check_cluster(
    options: argparse.Namespace,
    report: Findings,
    settings: Mapping[str, object],
    config: AdminConfig,
    addresses: AddressChecks,
    reached: list[Address],
) -> bool:
    """Check what brokers respond; return whether a probe can succeed."""
    checks = ClusterChecks(report, settings, config, addresses, timeout_seconds(options))
    described = {each: checks.run(each) for each in reached}
    clusters = [each for each in described.values() if each is not None]
    if not clusters:
        return False
    ids = {each.cluster_id for each in clusters}
    if len(ids) > 1:
        report.add(
            Status.FAILED,
            "metadata",
            "bootstrap.servers",
            f"the servers belong to {len(ids)} clusters",
            "name servers of one cluster only",
        )
    checks.check_advertised(clusters[0], [each for each in reached if described[each] is not None])
    return not report.failed


def _probe(options: argparse.Namespace, report: Findings) -> None:
    if not options.probe and options.topic is None:
        report.add(
            Status.SKIPPED, "probe", "produce, consume, clock", "not asked for", "use --probe"
        )
        return
    probe = Probe(
        report,
        client_options(options, ADMIN_CONFIG),
        producer_options(options, PRODUCER_CONFIG),
        client_options(options, CONSUMER_CONFIG),
        timeout_seconds(options),
    )
    probe.run(options.topic)
