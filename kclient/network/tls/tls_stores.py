"""Key store and trust store of a client or a listener, as configured."""

from typing import NamedTuple

from kclient.common.errors import ConfigError
from kclient.common.secret import Secret


class TlsStores(NamedTuple):
    """Certificates and private key, each as a PEM file or as PEM text.

    Attributes:
        owner: Start of the names of settings in errors, such as ``listener IN: ``.
        separator: ``.`` or ``_`` in the names of settings in errors.
        truststore_location: File with trusted certificates.
        truststore_certificates: The same as text.
        keystore_location: File with a private key and its certificate chain.
        keystore_key: Private key as text.
        keystore_certificate_chain: Certificate chain of `keystore_key`.
        key_password: Password of the private key.
    """

    owner: str
    separator: str
    truststore_location: str | None
    truststore_certificates: str | None
    keystore_location: str | None
    keystore_key: Secret | None
    keystore_certificate_chain: str | None
    key_password: Secret | None

    def named(self, *words: str) -> str:
        """Return the name of a setting, for errors."""
        return self.owner + self.separator.join(("ssl", *words))

    def check(self) -> None:
        """Check that each store is given once, and completely.

        Raises:
            ConfigError: A store is given as a file and as text, or a key without its certificate.
        """
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
