"""TLS contexts whose files change while a client runs."""

import logging
import ssl
from pathlib import Path
from typing import Any

import pytest

from kclient.common.errors import ConfigError
from kclient.network.security_config import SecurityConfig
from kclient.network.tls.client_context import client_context
from kclient.network.tls.reloading_context import ReloadingContext
from kclient.testing.certificate_authority import CertificateAuthority
from tests.support.virtual.virtual_home import VirtualHome

AUTHORITY = CertificateAuthority("first authority")
OTHER = CertificateAuthority("other authority")


class Reloading:
    """Context of stores in a directory, in virtual time."""

    def __init__(self, directory: Path, **values: Any) -> None:
        self.home = VirtualHome()
        self.trust = directory / "trust.pem"
        self.keys = directory / "keys.pem"
        self.trust.write_text(AUTHORITY.pem)
        self.keys.write_text(AUTHORITY.issue("client").pem)
        config = SecurityConfig(
            security_protocol="SSL",
            ssl_truststore_location=str(self.trust),
            ssl_keystore_location=str(self.keys),
            **values,
        )
        self.context = ReloadingContext(
            [str(self.trust), str(self.keys)],
            lambda: client_context(config),
            self.home.runtime.clock,
            logging.getLogger("kclient.test"),
        )

    def replace(self, path: Path, text: str) -> None:
        """Replace a file as a tool does that renews certificates."""
        new = path.with_suffix(".new")
        new.write_text(text)
        new.replace(path)

    def authorities(self) -> list[str]:
        """Return the names of the trusted authorities of the present context."""
        subjects = [str(each["subject"]) for each in self.context.current().get_ca_certs()]
        names = ("first authority", "other authority")
        return [name for name in names for subject in subjects if name in subject]


def test_changed_store_is_used_a_second_later(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    reloading = Reloading(tmp_path)
    first = reloading.context.current()
    assert reloading.authorities() == ["first authority"]
    reloading.replace(reloading.trust, OTHER.pem)
    reloading.home.sleep(900)
    assert reloading.context.current() is first
    reloading.home.sleep(200)
    assert reloading.authorities() == ["other authority"]
    assert "loaded the changed store" in caplog.text
    second = reloading.context.current()
    reloading.home.sleep(5_000)
    assert reloading.context.current() is second


@pytest.mark.parametrize("text", ["", "canary", OTHER.pem[:200], None])
def test_bad_store_keeps_the_earlier_context(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, text: str | None
) -> None:
    reloading = Reloading(tmp_path)
    first = reloading.context.current()
    if text is None:
        reloading.trust.unlink()
    else:
        reloading.replace(reloading.trust, text)
    for _ in range(5):
        reloading.home.sleep(2_000)
        assert reloading.context.current() is first
    (record,) = caplog.records
    assert record.levelname == "WARNING"
    assert "is kept: ssl_truststore_location: got" in record.getMessage()
    assert "canary" not in record.getMessage()
    reloading.replace(reloading.trust, OTHER.pem)
    reloading.home.sleep(2_000)
    assert reloading.authorities() == ["other authority"]


def test_renewed_key_store_is_used(tmp_path: Path) -> None:
    reloading = Reloading(tmp_path)
    first = reloading.context.current()
    reloading.replace(reloading.keys, AUTHORITY.issue("client").chain)  # not complete yet
    reloading.home.sleep(2_000)
    assert reloading.context.current() is first
    reloading.replace(reloading.keys, AUTHORITY.issue("client").pem)
    reloading.home.sleep(2_000)
    assert isinstance(reloading.context.current(), ssl.SSLContext)
    assert reloading.context.current() is not first


def test_first_context_must_be_loaded(tmp_path: Path) -> None:
    def fail() -> ssl.SSLContext:
        raise ConfigError("store: damaged")

    with pytest.raises(ConfigError, match="store: damaged"):
        ReloadingContext(
            [str(tmp_path)], fail, VirtualHome().runtime.clock, logging.getLogger("kclient.test")
        )
