"""Records of SCRAM credentials, made of salted passwords."""

from kclient.network.sasl.scram import ScramKeys, ScramMechanism
from kclient.protocol.messages.metadata_records import UserScramCredentialRecord


def scram_record(
    mechanism: ScramMechanism, user: str, iterations: int, *, salt: bytes, salted: bytes
) -> UserScramCredentialRecord:
    """Return the record of a credential, with the keys of a salted password."""
    keys = ScramKeys.of(mechanism.hash_name, salted)
    return UserScramCredentialRecord(
        name=user,
        mechanism=mechanism.code,
        salt=salt,
        stored_key=keys.stored_key,
        server_key=keys.server_key,
        iterations=iterations,
    )
