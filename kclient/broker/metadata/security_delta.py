"""Replay of records of access rules, SCRAM credentials and delegation tokens."""

from kclient.broker.metadata.metadata_changes import MetadataChanges
from kclient.broker.metadata.metadata_image import (
    DelegationToken,
    MetadataImage,
    ScramUser,
    StandardAcl,
)
from kclient.broker.metadata.shared_mapping import SharedMapping
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


class SecurityDelta:
    """Access rules and credentials with records replayed onto them.

    Attributes:
        acls: Access rules by id.
        scram: SCRAM credentials by mechanism and user.
        delegation_tokens: Delegation tokens by token id.
    """

    def __init__(self, image: MetadataImage, changes: MetadataChanges) -> None:
        self._changes = changes
        self.acls: SharedMapping[bytes, StandardAcl] = SharedMapping(image.acls)
        self.scram: SharedMapping[ScramUser, ScramCredential] = SharedMapping(image.scram)
        self.delegation_tokens: SharedMapping[str, DelegationToken] = SharedMapping(
            image.delegation_tokens
        )

    def add_acl(self, record: AccessControlEntryRecord) -> None:
        """Add an access rule."""
        rule = StandardAcl(
            resource_type=record.resource_type,
            resource_name=record.resource_name,
            pattern_type=record.pattern_type,
            principal=record.principal,
            host=record.host,
            operation=record.operation,
            permission_type=record.permission_type,
        )
        self.acls.set(record.id, rule)
        self._changes.changed_acls[record.id] = None

    def remove_acl(self, record: RemoveAccessControlEntryRecord) -> None:
        """Remove an access rule."""
        if self.acls.remove(record.id) is None:
            raise KafkaError(f"metadata log: access rule {record.id.hex()} is unknown")
        self._changes.changed_acls[record.id] = None

    def set_scram(self, record: UserScramCredentialRecord) -> None:
        """Set the credential of a user."""
        user = (record.mechanism, record.name)
        self.scram.set(
            user,
            ScramCredential(record.salt, record.stored_key, record.server_key, record.iterations),
        )
        self._changes.changed_scram[user] = None

    def remove_scram(self, record: RemoveUserScramCredentialRecord) -> None:
        """Remove the credential of a user."""
        user = (record.mechanism, record.name)
        self.scram.remove(user)
        self._changes.changed_scram[user] = None

    def set_delegation_token(self, record: DelegationTokenRecord) -> None:
        """Add a delegation token, or renew it."""
        token = DelegationToken(
            owner=record.owner,
            requester=record.requester,
            renewers=tuple(record.renewers),
            issue_timestamp=record.issue_timestamp,
            max_timestamp=record.max_timestamp,
            expiration_timestamp=record.expiration_timestamp,
        )
        self.delegation_tokens.set(record.token_id, token)
        self._changes.changed_delegation_tokens[record.token_id] = None

    def remove_delegation_token(self, record: RemoveDelegationTokenRecord) -> None:
        """Remove a delegation token."""
        self.delegation_tokens.remove(record.token_id)
        self._changes.changed_delegation_tokens[record.token_id] = None
