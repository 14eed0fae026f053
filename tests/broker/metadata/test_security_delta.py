"""Replay of access rules, SCRAM credentials and delegation tokens."""

import pytest

from kclient.broker.metadata.metadata_delta import MetadataDelta
from kclient.broker.metadata.metadata_image import (
    DelegationToken,
    MetadataImage,
    StandardAcl,
)
from kclient.broker.metadata.security_delta import SecurityDelta
from kclient.common.errors import KafkaError
from kclient.network.sasl.scram import ScramCredential
from kclient.protocol.messages.metadata_records import (
    AccessControlEntryRecord,
    DelegationTokenRecord,
    RemoveAccessControlEntryRecord,
    RemoveDelegationTokenRecord,
    RemoveUserScramCredentialRecord,
    UserScramCredentialRecord,
)

ID = b"\3" * 16


@pytest.fixture
def delta() -> MetadataDelta:
    delta = MetadataDelta(MetadataImage())
    assert isinstance(delta.security_delta, SecurityDelta)
    return delta


def test_access_rules(delta: MetadataDelta) -> None:
    delta.replay(
        AccessControlEntryRecord(
            id=ID,
            resource_type=2,
            resource_name="t",
            pattern_type=3,
            principal="User:a",
            host="*",
            operation=4,
            permission_type=5,
        )
    )
    assert delta.apply(1).acls == {ID: StandardAcl(2, "t", 3, "User:a", "*", 4, 5)}
    delta.replay(RemoveAccessControlEntryRecord(id=ID))
    assert delta.apply(2).acls == {}
    assert list(delta.changed_acls) == [ID]
    with pytest.raises(KafkaError, match="access rule"):
        delta.replay(RemoveAccessControlEntryRecord(id=ID))


def test_scram_credentials(delta: MetadataDelta) -> None:
    for iterations in (4096, 8192):
        delta.replay(
            UserScramCredentialRecord(
                name="u",
                mechanism=2,
                salt=b"salt",
                stored_key=b"stored",
                server_key=b"server",
                iterations=iterations,
            )
        )
    image = delta.apply(1)
    assert image.scram == {(2, "u"): ScramCredential(b"salt", b"stored", b"server", 8192)}
    assert "stored" not in repr(image)
    delta.replay(RemoveUserScramCredentialRecord(name="u", mechanism=2))
    delta.replay(RemoveUserScramCredentialRecord(name="v", mechanism=1))
    assert delta.apply(2).scram == {}
    assert list(delta.changed_scram) == [(2, "u"), (1, "v")]


def test_delegation_tokens(delta: MetadataDelta) -> None:
    delta.replay(
        DelegationTokenRecord(
            owner="User:a",
            requester="User:b",
            renewers=["User:c"],
            issue_timestamp=1,
            max_timestamp=3,
            expiration_timestamp=2,
            token_id="id",
        )
    )
    token = DelegationToken("User:a", "User:b", ("User:c",), 1, 3, 2)
    assert delta.apply(1).delegation_tokens == {"id": token}
    delta.replay(RemoveDelegationTokenRecord(token_id="id"))
    assert delta.apply(2).delegation_tokens == {}
    assert list(delta.changed_delegation_tokens) == ["id"]
