"""PKCS12 stores, as keytool and openssl write them."""

import base64
import ssl
import sys
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.serialization import pkcs12

from kclient.client.client_config import ClientConfig
from kclient.common.config_def import ConfigDef
from kclient.common.errors import ConfigError
from kclient.network.tls.client_context import client_context
from kclient.testing.certificate_authority import CertificateAuthority, Identity

AUTHORITY = CertificateAuthority("authority")
CLIENT = AUTHORITY.issue("client")
PASSWORD = "canary"
# keytool -importcert -noprompt -alias ca -file ca.pem -storetype PKCS12 -storepass canary-long
TRUST_STORE_OF_KEYTOOL = (
    "MIICwgIBAzCCAmwGCSqGSIb3DQEHAaCCAl0EggJZMIICVTCCAlEGCSqGSIb3DQEHBqCCAkIwggI+AgEAMIICNwYJKo"
    "ZIhvcNAQcBMGYGCSqGSIb3DQEFDTBZMDgGCSqGSIb3DQEFDDArBBQOtlOvx5yFky6515MEgPFXwGK2NgICJxACASAw"
    "DAYIKoZIhvcNAgkFADAdBglghkgBZQMEASoEEALyHi10t63thC67jXuNhMuAggHAfq7SAoBGYC8omgPuA/m4Y64Hmi"
    "hb3gQGEbtEYJTQgkInGSPXckvnsbYxfW/RyBpMtdTqLOHsQMZwLOtZ4kviHStH9gnKKv2IJY8AEcBDsfZX6z7+G8vW"
    "QX2Dn+Cb9Un22fWiBbXgyRZCQ+SMnuznNE3RWect54fDk4zICfq0JDuNUH5felneMHCKbv33c13/yKCXjSJWlpjtWF"
    "+jBMkLkP/5yw7TtuuauLRwgXX4uN5vU5VWM54ewN8pju6A0NifmILbzDmfywxmenh3v+OXTmbHhemQkR3X2vn2cRTb"
    "wUwbRR8LddGnGUpG5li3ao5mpl1J9NWWTODvlP2iI4Gxg4nzu7RpKhubAGdifCyeT0aopys8bUECCqZFYHBTSfX2o4"
    "vmuoKymEqjbZNIrFEBLPTjASb2UznyZhcOAPaTqEDa8AXVe3ZJg4e/zp+jOekXqOE9Bwu/u6n7YaQphqoSmoM4TntF"
    "7RpSOw4DlmutGXR1sLROeSQS1ylxO4h6X5RyugggydaoVcbC6kO13k6GL2r/cJhce8maWN6+7viCK/1s2yPiUVN0DQ"
    "CmasqJSfkzyEWZU/Rm0+IGOHTpTOzYSzBNMDEwDQYJYIZIAWUDBAIBBQAEIKUM5M6asfWAwySeEVdN0KFdsWBiWGlq"
    "UIgnfdhkgfbDBBQp9iXTs4KWJaPfrMpSAxg0NCS3ygICJxA="
)
_CLIENT = ConfigDef("test", ClientConfig)


def context(**given: object) -> ssl.SSLContext:
    options = {"bootstrap_servers": "a:1", "security_protocol": "SSL", **given}
    return client_context(_CLIENT.parse(options))


def key_store(identity: Identity | None = CLIENT, password: str | None = PASSWORD) -> bytes:
    """Return a store with the certificate of the authority, and an identity if there is one."""
    encryption: serialization.KeySerializationEncryption = serialization.NoEncryption()
    if password is not None:
        encryption = serialization.BestAvailableEncryption(password.encode())
    key: Any = None
    certificate = None
    if identity is not None:
        key = serialization.load_pem_private_key(identity.key.encode(), None)
        certificate = x509.load_pem_x509_certificate(identity.chain.encode())
    authority = x509.load_pem_x509_certificate(AUTHORITY.pem.encode())
    return pkcs12.serialize_key_and_certificates(b"a", key, certificate, [authority], encryption)


def stored(directory: Path, data: bytes) -> str:
    path = directory / "store.p12"
    path.write_bytes(data)
    return str(path)


@pytest.mark.parametrize("password", [PASSWORD, None])
def test_stores_are_loaded(tmp_path: Path, password: str | None) -> None:
    path = stored(tmp_path, key_store(password=password))
    loaded = context(
        ssl_keystore_type="pkcs12",
        ssl_keystore_location=path,
        ssl_keystore_password=password,
        ssl_truststore_type="PKCS12",
        ssl_truststore_location=stored(tmp_path, key_store(password=password)),
        ssl_truststore_password=password,
    )
    assert "authority" in str(loaded.get_ca_certs())
    assert loaded.cert_store_stats()["x509_ca"] == 1


def test_trust_store_without_a_key(tmp_path: Path) -> None:
    loaded = context(
        ssl_truststore_type="PKCS12",
        ssl_truststore_location=stored(tmp_path, key_store(None)),
        ssl_truststore_password=PASSWORD,
    )
    assert loaded.cert_store_stats()["x509_ca"] == 1


def test_trust_store_of_keytool(tmp_path: Path) -> None:
    loaded = context(
        ssl_truststore_type="PKCS12",
        ssl_truststore_location=stored(tmp_path, base64.b64decode(TRUST_STORE_OF_KEYTOOL)),
        ssl_truststore_password="canary-long",
    )
    assert "authority of keytool" in str(loaded.get_ca_certs())


@pytest.mark.parametrize(
    ("data", "given", "text"),
    [
        (
            key_store(),
            {"ssl_keystore_password": "canary-wrong"},
            "which ssl_keystore_password does not open, or damaged PKCS12",
        ),
        (key_store(), {}, "a PKCS12 store with a password, expected ssl_keystore_password too"),
        (
            key_store()[:-20],
            {"ssl_keystore_password": PASSWORD},
            "which ssl_keystore_password does not open, or damaged PKCS12",
        ),
        (
            key_store(None),
            {"ssl_keystore_password": PASSWORD},
            "1 certificates and no private key",
        ),
        (CLIENT.pem.encode(), {"ssl_keystore_password": PASSWORD}, "a PEM file, expected PKCS12"),
        (b"\xfe\xed\xfe\xed", {"ssl_keystore_password": PASSWORD}, "a Java keystore, expected"),
        (None, {"ssl_keystore_password": PASSWORD}, "which cannot be read"),
    ],
)
def test_bad_stores_are_named(
    tmp_path: Path, data: bytes | None, given: dict[str, object], text: str
) -> None:
    path = str(tmp_path / "missing") if data is None else stored(tmp_path, data)
    with pytest.raises(ConfigError) as caught:
        context(ssl_keystore_type="PKCS12", ssl_keystore_location=path, **given)
    assert str(caught.value).startswith("ssl_keystore_location: got ")
    assert text in str(caught.value)
    assert "canary" not in str(caught.value)


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (
            {"ssl_keystore_location": "f", "ssl_keystore_password": "canary"},
            "ssl_keystore_password: got it with ssl_keystore_type 'PEM', expected 'PKCS12'",
        ),
        (
            {"ssl_truststore_type": "PKCS12"},
            "ssl_truststore_type: got 'PKCS12' without ssl_truststore_location, expected both",
        ),
        (
            {
                "ssl_keystore_type": "PKCS12",
                "ssl_keystore_location": "f",
                "ssl_keystore_password": "canary",
                "ssl_key_password": "canary2",
            },
            "ssl_key_password: got another value than ssl_keystore_password, expected the same",
        ),
        ({"ssl_keystore_type": "JKS"}, "ssl_keystore_type: got 'JKS' .str., expected 'PEM' or"),
    ],
)
def test_options_of_stores_fit_together(given: dict[str, object], text: str) -> None:
    with pytest.raises(ConfigError, match=text) as caught:
        context(**given)
    assert "canary" not in str(caught.value)


def test_missing_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = stored(tmp_path, key_store())
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives.serialization.pkcs12", None)
    with pytest.raises(ConfigError, match="PKCS12 stores: the 'cryptography' package is missing"):
        context(
            ssl_truststore_type="PKCS12",
            ssl_truststore_location=path,
            ssl_truststore_password=PASSWORD,
        )
