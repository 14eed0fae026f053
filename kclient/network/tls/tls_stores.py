"""Key store and trust store of a client or a listener, as configured."""

from typing import NamedTuple

from kclient.common.errors import ConfigError
from kclient.common.secret import Secret

PKCS12 = "PKCS12"
"""Type of a store in another format than PEM; its file has a password."""


class TlsStores(NamedTuple):
    """Certificates and private key, each as a file or as PEM text.

    Attributes:
        owner: Start of the names of settings in errors, such as ``listener IN: ``.
        separator: ``.`` or ``_`` in the names of settings in errors.
        truststore_type: ``PEM`` or ``PKCS12``.
        truststore_location: File with trusted certificates.
        truststore_password: Password of the file, if it is PKCS12.
        truststore_certificates: The same as text.
        keystore_type: ``PEM`` or ``PKCS12``.
        keystore_location: File with a private key and its certificate chain.
        keystore_password: Password of the file, if it is PKCS12.
        keystore_key: Private key as text.
        keystore_certificate_chain: Certificate chain of `keystore_key`.
        key_password: Password of the private key.
    """

    owner: str
    separator: str
    truststore_type: str
    truststore_location: str | None
    truststore_password: Secret | None
    truststore_certificates: str | None
    keystore_type: str
    keystore_location: str | None
    keystore_password: Secret | None
    keystore_key: Secret | None
    keystore_certificate_chain: str | None
    key_password: Secret | None

    def named(self, *words: str) -> str:
        """Return the name of a setting, for errors."""
        return self.owner + self.separator.join(("ssl", *words))

    def check(self) -> None:
        """Check that each store is given once, and completely.

        Raises:
            ConfigError: A store is given as a file and as text, or a key without its certificate,
                or a password does not fit the type of its store.
        """
        self._check_types()
        key, chain = self.keystore_key, self.keystore_certificate_chain
        for first, second, words in (
            (
                self.truststore_location,
                self.truststore_certificates,
                ("truststore", "certificates"),
            ),
            (self.keystore_location, key, ("keystore", "key")),
            (self.keystore_location, chain, ("keystore", "certificate", "chain")),
        ):
            if first is not None and second is not None:
                raise ConfigError(
                    f"{self.named(words[0], 'location')}: got it with {self.named(*words)},"
                    " expected one of them"
                )
        if (key is None) != (chain is None):
            names = self.named("keystore", "key"), self.named("keystore", "certificate", "chain")
            raise ConfigError(f"{', '.join(names)}: got one, expected both or none")

    def _check_types(self) -> None:
        for store, kind, location, password in (
            (
                "truststore",
                self.truststore_type,
                self.truststore_location,
                self.truststore_password,
            ),
            ("keystore", self.keystore_type, self.keystore_location, self.keystore_password),
        ):
            if kind != PKCS12 and password is not None:
                raise ConfigError(
                    f"{self.named(store, 'password')}: got it with {self.named(store, 'type')}"
                    f" {kind!r}, expected {PKCS12!r}; {self.named('key', 'password')} opens a"
                    " private key in PEM"
                )
            if kind == PKCS12 and location is None:
                raise ConfigError(
                    f"{self.named(store, 'type')}: got {kind!r} without"
                    f" {self.named(store, 'location')}, expected both or none"
                )
        has_other = self.key_password not in (None, self.keystore_password)
        if self.keystore_type == PKCS12 and has_other:
            raise ConfigError(
                f"{self.named('key', 'password')}: got another value than"
                f" {self.named('keystore', 'password')}, expected the same or none with {PKCS12}"
            )
