import pytest

from kclient.network.endpoint import Endpoint, SecurityProtocol


@pytest.mark.parametrize(
    ("host", "loopback", "any_address", "ip_version"),
    [
        ("127.0.0.1", True, False, 4),
        ("127.8.8.8", True, False, 4),
        ("::1", True, False, 6),
        ("localhost", True, False, None),
        ("0.0.0.0", False, True, 4),  # noqa: S104 (a case, not bound to)
        ("::", False, True, 6),
        ("192.0.2.1", False, False, 4),
        ("example.org", False, False, None),
    ],
)
def test_kinds_of_hosts(
    host: str, loopback: bool, any_address: bool, ip_version: int | None
) -> None:
    endpoint = Endpoint("PLAINTEXT", host, 9092)
    assert endpoint.is_loopback is loopback
    assert endpoint.is_any_address is any_address
    assert endpoint.ip_version == ip_version


def test_text_of_an_endpoint() -> None:
    endpoint = Endpoint("INTERNAL", "::1", 9092, SecurityProtocol.SSL)
    assert str(endpoint) == "INTERNAL://[::1]:9092"
    assert endpoint.address == "[::1]:9092"
