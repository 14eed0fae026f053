"""TLS context of a client: stores of every form, and errors that name their problem."""

import os
import ssl
from pathlib import Path
from typing import Any

import pytest

from kclient.client.client_config import ClientConfig
from kclient.common.config_def import ConfigDef
from kclient.common.errors import ConfigError
from kclient.common.secret import Secret
from kclient.network.security_config import SecurityConfig
from kclient.network.tls.cipher_suites import CIPHER_SUITES_1_2
from kclient.network.tls.client_context import client_context
from kclient.network.tls.store_loading import pem_file
from kclient.testing.certificate_authority import CertificateAuthority
from tests.support.certificates import encrypted

AUTHORITY = CertificateAuthority("authority")
CLIENT = AUTHORITY.issue("client")
OTHER = AUTHORITY.issue("other")


SUITES_1_3 = [
    "TLS_AES_128_GCM_SHA256",
    "TLS_AES_256_GCM_SHA384",
    "TLS_CHACHA20_POLY1305_SHA256",
]
ECDSA_256 = "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"
_CLIENT = ConfigDef("test", ClientConfig)


def parse(**given: object) -> ClientConfig:
    return _CLIENT.parse({"bootstrap_servers": "a:1", "security_protocol": "SSL", **given})


def config(**values: Any) -> SecurityConfig:
    return SecurityConfig(security_protocol="SSL", **values)


def test_context_verifies_and_has_no_old_version() -> None:
    context = client_context(config())
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.check_hostname
    assert context.minimum_version is ssl.TLSVersion.TLSv1_2
    assert context.options & ssl.OP_NO_RENEGOTIATION


def test_trust_store_replaces_the_certificates_of_the_system() -> None:
    context = client_context(config(ssl_truststore_certificates=AUTHORITY.pem))
    assert context.cert_store_stats()["x509_ca"] == 1


def test_any_name_is_accepted_on_demand_by_a_trusted_authority() -> None:
    context = client_context(config(ssl_endpoint_identification_algorithm=""))
    assert not context.check_hostname
    assert context.verify_mode is ssl.CERT_REQUIRED


def test_own_context_is_used_as_it_is() -> None:
    own = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    assert client_context(config(ssl_context=own)) is own


def test_file_with_a_private_key_is_gone_afterwards() -> None:
    with pem_file("text") as path:
        assert Path(path).read_text() == "text"
        assert Path(path).stat().st_uid == os.getuid()
    assert not Path(path).exists()


@pytest.mark.parametrize(
    ("name", "data", "text"),
    [
        ("truststore", None, "which cannot be read"),
        ("truststore", b"", "got no certificate, expected PEM with '-----BEGIN CERTIFICATE-----'"),
        ("truststore", AUTHORITY.pem[:200].encode(), "got a damaged certificate"),
        (
            "truststore",
            b"\xfe\xed\xfe\xed\0",
            "a Java keystore, expected PEM or PKCS12; convert it with keyt",
        ),
        (
            "keystore",
            b"\x30\x82\x01\x02",
            "a PKCS12 or DER file, expected PEM; set ssl_keystore_type='PKCS12'",
        ),
        (
            "keystore",
            CLIENT.chain.encode(),
            "got 1 certificates and no private key, expected PEM wi",
        ),
        (
            "keystore",
            CLIENT.key.encode(),
            "got 0 certificates and a private key, expected PEM with",
        ),
        (
            "keystore",
            (CLIENT.key + OTHER.chain).encode(),
            "got a private key that does not belong to the first certificate",
        ),
        (
            "keystore",
            encrypted(CLIENT, "canary").encode(),
            "got an encrypted private key, expected ssl_key_password too",
        ),
        ("keystore", CLIENT.pem.replace("MIG", "XXX").encode(), "damaged PEM"),
    ],
)
def test_damaged_stores(tmp_path: Path, name: str, data: bytes | None, text: str) -> None:
    path = tmp_path / "store"
    if data is not None:
        path.write_bytes(data)
    with pytest.raises(ConfigError, match=text) as caught:
        client_context(config(**{f"ssl_{name}_location": str(path)}))
    assert str(caught.value).startswith(f"ssl_{name}_location: got")


def test_wrong_password_of_a_key() -> None:
    values: dict[str, Any] = {
        "ssl_keystore_key": Secret(encrypted(CLIENT, "right").removesuffix(CLIENT.chain)),
        "ssl_keystore_certificate_chain": CLIENT.chain,
    }
    client_context(config(**values, ssl_key_password=Secret("right")))
    with pytest.raises(ConfigError, match="that ssl_key_password does not open") as caught:
        client_context(config(**values, ssl_key_password=Secret("canary")))
    assert "canary" not in str(caught.value)


@pytest.mark.parametrize(
    ("given", "lowest", "highest"),
    [
        ({}, "TLSv1.2", "TLSv1.3"),
        ({"ssl_enabled_protocols": "TLSv1.2"}, "TLSv1.2", "TLSv1.2"),
        ({"ssl_enabled_protocols": ["tlsv1.3"]}, "TLSv1.3", "TLSv1.3"),
        ({"ssl_protocol": "TLSv1.2"}, "TLSv1.2", "TLSv1.2"),
        ({"ssl_protocol": "TLS"}, "TLSv1.2", "TLSv1.3"),
        ({"ssl_cipher_suites": SUITES_1_3}, "TLSv1.3", "TLSv1.3"),
        ({"ssl_cipher_suites": [ECDSA_256]}, "TLSv1.2", "TLSv1.2"),
        ({"ssl_cipher_suites": [*SUITES_1_3, ECDSA_256]}, "TLSv1.2", "TLSv1.3"),
    ],
)
def test_versions_are_those_of_all_settings(
    given: dict[str, object], lowest: str, highest: str
) -> None:
    context = client_context(parse(**given))
    assert context.minimum_version is ssl.TLSVersion[lowest.replace(".", "_")]
    assert context.maximum_version is ssl.TLSVersion[highest.replace(".", "_")]


def test_cipher_suites_are_those_of_their_names() -> None:
    codes = {
        "TLS_DHE_RSA_WITH_AES_128_GCM_SHA256": 0x009E,
        "TLS_DHE_RSA_WITH_AES_256_GCM_SHA384": 0x009F,
        "TLS_DHE_RSA_WITH_CHACHA20_POLY1305_SHA256": 0xCCAA,
        "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256": 0xC023,
        "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256": 0xC02B,
        "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA384": 0xC024,
        "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384": 0xC02C,
        "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256": 0xCCA9,
        "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256": 0xC027,
        "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256": 0xC02F,
        "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA384": 0xC028,
        "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384": 0xC030,
        "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256": 0xCCA8,
    }
    assert codes.keys() == CIPHER_SUITES_1_2.keys()
    for name, code in codes.items():
        context = client_context(parse(ssl_cipher_suites=name))
        of_1_2 = [row for row in context.get_ciphers() if row["protocol"] != "TLSv1.3"]
        assert [row["id"] & 0xFFFF for row in of_1_2] == [code]


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"ssl_enabled_protocols": "TLSv1.1"}, "ssl_enabled_protocols: got 'TLSv1.1' .str., expec"),
        ({"ssl_enabled_protocols": ""}, "ssl_enabled_protocols: got ''"),
        ({"ssl_enabled_protocols": []}, "ssl_enabled_protocols: got "),
        ({"ssl_protocol": "SSLv3"}, "ssl_protocol: got 'SSLv3' .str., expected one of 'TLS', 'TLS"),
        ({"ssl_cipher_suites": "ECDHE-RSA-AES128-SHA"}, "none of its name.*pass an ssl.SSLContext"),
        ({"ssl_cipher_suites": SUITES_1_3[:2]}, "all three suites of TLS 1.3, or none of them"),
        (
            {"ssl_enabled_protocols": "TLSv1.3", "ssl_protocol": "TLSv1.2"},
            "ssl_enabled_protocols: got TLSv1.3 with ssl_protocol TLSv1.2, expected a common vers",
        ),
        (
            {"ssl_enabled_protocols": "TLSv1.3", "ssl_cipher_suites": ECDSA_256},
            "ssl_cipher_suites: got no suite of TLSv1.3, expected one of each version that is ena",
        ),
    ],
)
def test_versions_and_suites_fit_together(given: dict[str, object], text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        parse(**given)
