"""Delegation tokens, as `AdminClient` creates and describes them (KIP-48)."""

from typing import NamedTuple

from kclient.common.secret import Secret


class TokenInformation(NamedTuple):
    """A token without its secret (Kafka: TokenInformation).

    Principals have a type and a name, such as "User:alice". Times are ms since 1970.

    Attributes:
        token_id: Id of the token, with which a client authenticates as user name.
        owner: Principal of connections that authenticate with the token.
        token_requester: Principal that created the token; the owner if the broker does not report
            it.
        renewers: Principals that may renew the token, in addition to its owner.
        issue_timestamp: Time of its creation.
        expiry_timestamp: Time at which it expires unless it is renewed.
        max_timestamp: Time beyond which it cannot be renewed.
    """

    token_id: str
    owner: str
    token_requester: str
    renewers: tuple[str, ...]
    issue_timestamp: int
    expiry_timestamp: int
    max_timestamp: int


class DelegationToken(NamedTuple):
    """A token and its secret (Kafka: DelegationToken).

    Attributes:
        token_info: The token without its secret.
        hmac: Secret of the token in base64, with which a client authenticates as password. It is in
            no text of this object.
    """

    token_info: TokenInformation
    hmac: Secret
