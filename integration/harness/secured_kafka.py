"""Apache Kafka with a listener of SASL_SSL and one user, by SCRAM-SHA-512."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from integration.harness.kafka_cluster import ClusterOptions, KafkaCluster, Listener
from integration.harness.kafka_runtime import KafkaRuntime
from kclient.testing.certificate_authority import CertificateAuthority

USER = "alice"
PASSWORD = "canary pass;word='="  # noqa: S105 (of tests)
SCRAM_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"


class SecuredKafka(NamedTuple):
    """Running cluster with one node.

    Attributes:
        servers: Address of the listener.
        truststore: PEM file with the certificate of the authority.
    """

    servers: str
    truststore: Path


@contextmanager
def secured_kafka(runtime: KafkaRuntime, directory: Path) -> Iterator[SecuredKafka]:
    """Run a cluster for a block."""
    authority = CertificateAuthority("authority of the test")
    store, truststore = directory / "server.pem", directory / "ca.pem"
    store.write_text(authority.issue("broker", ("localhost", "127.0.0.1")).pem)
    truststore.write_text(authority.pem)
    properties = {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(store),
        "sasl.enabled.mechanisms": "SCRAM-SHA-512",
        "scram-sha-512.sasl.jaas.config": f"{SCRAM_MODULE} required;",
    }
    options = ClusterOptions(
        listeners=(Listener("BOTH", "SASL_SSL", properties=properties),),
        format_options=["--add-scram", f'SCRAM-SHA-512=[name={USER},password="{PASSWORD}"]'],
    )
    with KafkaCluster(runtime, directory, options) as cluster:
        yield SecuredKafka(cluster.bootstrap("BOTH"), truststore)
