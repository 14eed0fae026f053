"""SCRAM credentials of users, as `AdminClient` describes and alters them (KIP-554)."""

from typing import NamedTuple

from kclient.common.secret import Secret

_DEFAULT_ITERATIONS = 4096


class ScramCredentialInfo(NamedTuple):
    """Mechanism and iteration count of a credential (Kafka: ScramCredentialInfo).

    Attributes:
        mechanism: "SCRAM-SHA-256" or "SCRAM-SHA-512"; "UNKNOWN" if the broker has another one.
        iterations: Iteration count, 4,096 to 16,384.
    """

    mechanism: str
    iterations: int = _DEFAULT_ITERATIONS


class UserScramCredentialDeletion(NamedTuple):
    """Removal of a credential (Kafka: UserScramCredentialDeletion).

    Attributes:
        user: Name of the user.
        mechanism: "SCRAM-SHA-256" or "SCRAM-SHA-512".
    """

    user: str
    mechanism: str


class UserScramCredentialUpsertion:
    """Credential to add or to replace (Kafka: UserScramCredentialUpsertion).

    Attributes:
        user: Name of the user.
        credential_info: Mechanism and iteration count.
        password: The password, which is not sent: the client computes the salted password.
        salt: Salt of the password; None for a random one.
    """

    __slots__ = ("credential_info", "password", "salt", "user")

    def __init__(
        self,
        user: str,
        credential_info: ScramCredentialInfo,
        password: str | Secret,
        salt: bytes | None = None,
    ) -> None:
        self.user = user
        self.credential_info = credential_info
        self.password = Secret(password) if isinstance(password, str) else password
        self.salt = salt

    def __repr__(self) -> str:
        return (
            f"UserScramCredentialUpsertion(user={self.user!r}, "
            f"credential_info={self.credential_info!r}, password=[hidden])"
        )


UserScramCredentialAlteration = UserScramCredentialUpsertion | UserScramCredentialDeletion
"""Change of a credential."""
