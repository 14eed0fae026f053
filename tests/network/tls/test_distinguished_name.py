"""Subjects of certificates as Java 17 shows them (X500Principal.getName)."""

import datetime as dt
from collections.abc import Sequence

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from kclient.common.errors import ProtocolError
from kclient.network.tls.distinguished_name import subject_of

Name = tuple[x509.ObjectIdentifier, str]
CN, O = NameOID.COMMON_NAME, NameOID.ORGANIZATION_NAME  # noqa: E741 (its keyword)
OTHERS = (
    "2.5.4.12=#0c0174,UID=uid,OU=ou,L=l,ST=st,DC=dc,STREET=s,2.5.4.5=#13023132,"
    "1.2.840.113549.1.9.1=#1603614062"
)
START = dt.datetime(2026, 1, 1)  # noqa: DTZ001 (as the library takes it)


def certificate(*names: Sequence[Name]) -> bytes:
    """Return a certificate whose subject has these relative names, in DER."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name(
        [
            x509.RelativeDistinguishedName([x509.NameAttribute(*each) for each in name])
            for name in names
        ]
    )
    builder = x509.CertificateBuilder(
        x509.Name([x509.NameAttribute(CN, "issuer")]), subject, key.public_key(), 5, START
    )
    signed = builder.not_valid_after(START + dt.timedelta(days=1)).sign(key, hashes.SHA256())
    return signed.public_bytes(serialization.Encoding.DER)


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (
            [[(NameOID.COUNTRY_NAME, "DE")], [(O, "Org, Inc.")], [(CN, "client")]],
            "CN=client,O=Org\\, Inc.,C=DE",
        ),
        ([[(CN, 'a,b+c"d\\e<f>g;h=i#j/k')]], 'CN=a\\,b\\+c\\"d\\\\e\\<f\\>g\\;h\\=i\\#j/k'),
        ([[(CN, "# x ")], [(O, "  two ")]], "O=\\ \\ two\\ ,CN=\\# x\\ "),
        ([[(CN, "   ")]], "CN=\\ \\ \\ "),
        ([[(CN, "äöü€ \t")]], "CN=äöü€ \t"),
        ([[(CN, "a\0b")]], "CN=a\\00b"),
        (
            [[(CN, "z"), (O, "o")], [(NameOID.USER_ID, "u"), (CN, "c")]],
            "CN=c+UID=u,CN=z+O=o",
        ),
        (
            [
                [(NameOID.EMAIL_ADDRESS, "a@b")],
                [(NameOID.SERIAL_NUMBER, "12")],
                [(NameOID.STREET_ADDRESS, "s")],
                [(NameOID.DOMAIN_COMPONENT, "dc")],
                [(NameOID.STATE_OR_PROVINCE_NAME, "st")],
                [(NameOID.LOCALITY_NAME, "l")],
                [(NameOID.ORGANIZATIONAL_UNIT_NAME, "ou")],
                [(NameOID.USER_ID, "uid")],
                [(NameOID.TITLE, "t")],
            ],
            OTHERS,
        ),
        ([], ""),
    ],
)
def test_subject_has_the_form_of_java(names: Sequence[Sequence[Name]], expected: str) -> None:
    assert subject_of(certificate(*names)) == expected


def test_bytes_that_are_no_certificate_are_refused() -> None:
    whole = certificate([(CN, "client")])
    for data in (b"", b"\x30", b"\x30\x80", b"\x30\x84\xff\xff\xff\xff", whole[2:], whole + b"\0"):
        with pytest.raises(ProtocolError, match="not DER"):
            subject_of(data)
    for end in range(len(whole)):
        with pytest.raises(ProtocolError):
            subject_of(whole[:end])
