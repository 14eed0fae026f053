"""Forms of certificates that only tests use."""

from cryptography.hazmat.primitives import serialization

from kclient.testing.certificate_authority import Identity


def encrypted(identity: Identity, password: str) -> str:
    """Return key and certificate, with an encrypted key."""
    key = serialization.load_pem_private_key(identity.key.encode(), None)
    text = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(password.encode()),
    )
    return text.decode() + identity.chain
