"""TLS of a listener."""

import ssl

from kclient.common.secret import Secret
from kclient.network.tls.cipher_suites import TLS_1_2, TLS_1_3, TlsVersions
from kclient.network.tls.server_context import server_context
from kclient.network.tls.tls_stores import TlsStores
from kclient.testing.certificate_authority import CertificateAuthority


def test_context_has_no_renegotiation_compression_and_tickets() -> None:
    identity = CertificateAuthority("authority").issue("broker", ("kafka.example",))
    stores = TlsStores(
        owner="",
        separator=".",
        truststore_type="PEM",
        truststore_location=None,
        truststore_password=None,
        truststore_certificates=None,
        keystore_type="PEM",
        keystore_location=None,
        keystore_password=None,
        keystore_key=Secret(identity.key),
        keystore_certificate_chain=identity.chain,
        key_password=None,
    )
    versions = TlsVersions("", ".", (TLS_1_2, TLS_1_3), TLS_1_3, None)
    context = server_context(stores, versions, "none")
    for option in (ssl.OP_NO_RENEGOTIATION, ssl.OP_NO_COMPRESSION, ssl.OP_NO_TICKET):
        assert context.options & option
    assert context.num_tickets == 0
    assert context.minimum_version is ssl.TLSVersion.TLSv1_2
    assert context.keylog_filename is None
