"""Messages of OAUTHBEARER that a listener accepts and refuses."""

import pytest

from kclient.common.broker_errors import SaslAuthenticationError
from kclient.common.errors import ProtocolError
from kclient.network.sasl.json_web_token import AcceptedToken
from kclient.network.sasl.oauthbearer_server import OAuthBearerSaslServer

STATUS = '{"status":"invalid_token"}'


class OneToken:
    """Accepts one token."""

    def validate(self, text: str) -> AcceptedToken:
        if text != "a.b.c":
            raise ProtocolError("token: it is another one")
        return AcceptedToken("alice", 5000.0)


@pytest.mark.parametrize(
    "message",
    [
        b"n,,\1auth=Bearer a.b.c\1\1",
        b"n,,\1auth=bEARER   a.b.c\1\1",
        b"n,a=alice,\1auth=Bearer a.b.c\1traceId=5 6\1\1",
    ],
)
def test_message_with_the_token_is_accepted(message: bytes) -> None:
    server = OAuthBearerSaslServer(OneToken())
    assert server.evaluate_response(message) == b""
    assert server.complete
    assert (server.authorization_id, server.expires_at_ms) == ("alice", 5000.0)


def test_refused_token_fails_after_the_client_has_acknowledged_it() -> None:
    server = OAuthBearerSaslServer(OneToken())
    assert server.evaluate_response(b"n,,\1auth=Bearer x\1\1").decode() == STATUS
    assert not server.complete
    with pytest.raises(SaslAuthenticationError) as caught:
        server.evaluate_response(b"\1")
    assert str(caught.value) == STATUS


def test_refused_token_cannot_be_followed_by_another() -> None:
    server = OAuthBearerSaslServer(OneToken())
    server.evaluate_response(b"n,,\1auth=Bearer x\1\1")
    with pytest.raises(ProtocolError):
        server.evaluate_response(b"n,,\1auth=Bearer a.b.c\1\1")
    assert not server.complete


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"n,,\1\1",
        b"n,,\1auth=Basic a.b.c\1\1",
        b"n,,\1auth=Bearer a.b.c\1",
        b"n,,\1auth=Bearer a.b.c\1auth=Bearer a.b.c\1\1",
        b"n,,\1auth=Bearer a.b.c d\1\1",
        b"y,,\1auth=Bearer a.b.c\1\1",
        b"n,,auth=Bearer a.b.c\1\1",
        b"\0alice\0password",
    ],
)
def test_malformed_messages_are_refused(message: bytes) -> None:
    server = OAuthBearerSaslServer(OneToken())
    with pytest.raises(ProtocolError):
        server.evaluate_response(message)
    assert not server.complete


@pytest.mark.fault("A6")
def test_other_authorization_id_is_refused() -> None:
    server = OAuthBearerSaslServer(OneToken())
    with pytest.raises(SaslAuthenticationError, match=r"\(bob\) that is different .*\(alice\)"):
        server.evaluate_response(b"n,a=bob,\1auth=Bearer a.b.c\1\1")
    assert not server.complete


def test_names_in_errors_are_one_line_of_the_log() -> None:
    server = OAuthBearerSaslServer(OneToken())
    with pytest.raises(SaslAuthenticationError) as caught:
        server.evaluate_response(b"n,a=bob\nINFO forged,\1auth=Bearer a.b.c\1\1")
    assert r"('bob\nINFO forged')" in str(caught.value)
