"""Certificates for tests: an authority of their own, and what it signs."""

import datetime as dt
import ipaddress
from collections.abc import Sequence
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

_DAY = dt.timedelta(days=1)


class Identity(NamedTuple):
    """Certificate with its private key, as PEM text.

    Attributes:
        key: Private key, PKCS#8, not encrypted.
        chain: Certificate.
    """

    key: str
    chain: str

    @property
    def pem(self) -> str:
        """Key and certificate, as a key store has them."""
        return self.key + self.chain

    def __repr__(self) -> str:
        return f"Identity(key=[hidden], chain={self.chain!r})"


class CertificateAuthority:
    """Authority with a self-signed certificate.

    Args:
        name: Common name of its certificate.

    Attributes:
        pem: Its certificate, as a trust store has it.
    """

    def __init__(self, name: str) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name(name)
        constraints = x509.BasicConstraints(ca=True, path_length=0)
        certificate = (
            _builder(self._name, self._name, self._key, (-_DAY, 30 * _DAY))
            .add_extension(constraints, critical=True)
            .sign(self._key, hashes.SHA256())
        )
        self.pem = certificate.public_bytes(serialization.Encoding.PEM).decode()

    def issue(
        self, name: str, hosts: Sequence[str] = (), valid_days: tuple[int, int] = (-1, 30)
    ) -> Identity:
        """Issue a certificate for host names and IP addresses.

        Args:
            name: Common name.
            hosts: Host names and IP addresses.
            valid_days: First and last day of validity, relative to today.
        """
        key = ec.generate_private_key(ec.SECP256R1())
        first, last = (days * _DAY for days in valid_days)
        builder = _builder(_name(name), self._name, key, (first, last))
        if hosts:
            names = x509.SubjectAlternativeName(list(map(_general_name, hosts)))
            builder = builder.add_extension(names, critical=False)
        certificate = builder.sign(self._key, hashes.SHA256())
        chain = certificate.public_bytes(serialization.Encoding.PEM).decode()
        return Identity(_pem_of(key), chain)


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    valid: tuple[dt.timedelta, dt.timedelta],
) -> x509.CertificateBuilder:
    now = dt.datetime.now(dt.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now + valid[0])
        .not_valid_after(now + valid[1])
    )


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _pem_of(key: ec.EllipticCurvePrivateKey) -> str:
    form = serialization.PrivateFormat.PKCS8
    encryption = serialization.NoEncryption()
    return key.private_bytes(serialization.Encoding.PEM, form, encryption).decode()
