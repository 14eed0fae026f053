"""Detection of a peer that speaks another protocol, by the bytes in place of a size prefix.

The first four bytes of a Kafka frame are its size. In other protocols they are text or a record
type, which reads as a size beyond any limit: "HTTP" is 1,213,486,160 (KIP-498).
"""

_TLS_ALERT = 0x15
_TLS_HANDSHAKE = 0x16
_HTTP_WORDS = frozenset({b"HTTP", b"GET ", b"POST", b"HEAD", b"PUT ", b"OPTI", b"DELE", b"PATC"})


def foreign_peer(prefix: bytes) -> str | None:
    """Return the protocol that the peer seems to speak, or None if the bytes may be a size.

    Args:
        prefix: The first four bytes received.
    """
    if prefix[0] in {_TLS_ALERT, _TLS_HANDSHAKE} and prefix[1] == 3:
        kind = "a TLS alert" if prefix[0] == _TLS_ALERT else "a TLS handshake"
        return f"{kind}: the peer expects TLS, this side speaks plaintext; check security.protocol"
    if prefix in _HTTP_WORDS:
        return "HTTP: the address is that of a web server or proxy, not of a Kafka listener"
    if prefix == b"SSH-":
        return "SSH: the address is that of an SSH server, not of a Kafka listener"
    if all(0x20 <= byte < 0x7F or byte in b"\r\n\t" for byte in prefix):
        return f"text ({prefix!r}), not Kafka's protocol"
    return None
