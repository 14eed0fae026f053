"""Listener, users and access rules of an `EmbeddedCluster`."""

import re
import secrets
from collections.abc import Collection, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Final, Literal, cast

from kclient.admin import AclBinding, ScramCredentialInfo, UserScramCredentialUpsertion
from kclient.admin.admin_client import AdminClient
from kclient.admin.security_arguments import check_bindings
from kclient.broker.authorizer.standard_authorizer import STANDARD_AUTHORIZER
from kclient.client.client_config import ClientOptions
from kclient.common.config_def import describe
from kclient.common.errors import ConfigError
from kclient.common.extras import missing_package
from kclient.common.runtime import Runtime
from kclient.common.secret import Secret
from kclient.network.endpoint import SecurityProtocol
from kclient.network.sasl.credentials import UserCredentials
from kclient.network.sasl.jaas_config import ServerJaasConfig
from kclient.network.sasl.scram import SCRAM_MECHANISMS

if TYPE_CHECKING:
    from kclient.testing.certificate_authority import CertificateAuthority, Identity

Mechanism = Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]

SUPER_USER: Final = "cluster-administrator"
"""User that may do everything, whatever the access rules are."""

NODE_USER: Final = "cluster-node"
"""User as which the nodes of a cluster connect to each other; it may do everything, too."""

_PLAIN: Final = "PLAIN"
_MECHANISMS: Final = (_PLAIN, *SCRAM_MECHANISMS)
_DEFAULT_MECHANISM: Final = "SCRAM-SHA-512"
LOCAL_HOSTS: Final = ("localhost", "127.0.0.1", "::1")
_ITERATIONS: Final = 4096
# A name that is the same in a certificate, in SCRAM and in an access rule.
_USER_NAME = re.compile(r"[A-Za-z0-9._@-]{1,64}", re.ASCII)


def parse_security(raw: object) -> SecurityProtocol:
    """Return the security protocol of a name in any case.

    Raises:
        ConfigError: There is no such protocol.
    """
    names = SecurityProtocol.__members__
    if not isinstance(raw, str) or raw.upper() not in names:
        raise ConfigError(
            f"security: got {describe(raw)}, expected one of {', '.join(names).lower()}"
        )
    return names[raw.upper()]


def new_authority(name: str) -> "CertificateAuthority":
    """Return an authority that signs certificates of this machine.

    Args:
        name: Common name of its certificate: what needs it.

    Raises:
        ConfigError: The package that makes certificates is missing.
    """
    try:
        module = import_module("kclient.testing.certificate_authority")
    except ImportError as error:
        raise ConfigError(
            missing_package(f"certificates of {name}", "cryptography", "testing")
        ) from error
    authority: CertificateAuthority = module.CertificateAuthority(name)
    return authority


class ClusterSecurity:
    """Security of a cluster with one listener for clients and brokers, and one for controllers.

    The certificates are of an authority that signs for this cluster alone, and are valid for 30
    days. They, and the passwords of the cluster's own users, are new with each object.

    Args:
        protocol: Protocol of the listener, not PLAINTEXT.
        users: Passwords by user name; with SSL names are enough.
        acls: Access rules; no authorizer if None.

    Raises:
        ConfigError: A value is invalid, or a package is missing.
        InvalidArgumentError: A rule is invalid.
    """

    def __init__(
        self,
        protocol: SecurityProtocol,
        users: Mapping[str, str] | Collection[str],
        acls: Sequence[AclBinding] | None,
    ) -> None:
        self._protocol = protocol
        self._passwords = _passwords(users, with_sasl=protocol.uses_sasl)
        self._users = tuple(self._passwords)
        self._acls = check_bindings(acls) if acls else acls
        if acls is not None and not self._users:
            raise ConfigError("acls: got them without users, expected the users that they are for")
        self._passwords[SUPER_USER] = Secret(secrets.token_urlsafe())
        self._node = UserCredentials(NODE_USER, Secret(secrets.token_urlsafe()))
        self._tls = _TlsIdentities() if protocol.uses_ssl else None

    @property
    def _wants_client_certificates(self) -> bool:
        return self._protocol is SecurityProtocol.SSL and bool(self._users)

    def broker_settings(self) -> dict[str, object]:
        """Return the settings of the broker by Kafka's names."""
        name = self._protocol.name
        settings: dict[str, object] = {"listeners": f"{name}://127.0.0.1:0"}
        if self._tls is not None:
            settings["ssl.keystore.key"] = self._tls.server.key
            settings["ssl.keystore.certificate.chain"] = self._tls.server.chain
        if self._tls is not None and self._wants_client_certificates:
            settings["ssl.truststore.certificates"] = self._tls.trusted
            settings["ssl.client.auth"] = "required"
            settings["ssl.principal.mapping.rules"] = "RULE:^CN=(.*)$/$1/"
        if self._protocol.uses_sasl:
            settings["sasl.enabled.mechanisms"] = ",".join(_MECHANISMS)
            for mechanism in _MECHANISMS:
                users = self._passwords if mechanism == _PLAIN else {}
                key = f"listener.name.{name.lower()}.{mechanism.lower()}.sasl.jaas.config"
                settings[key] = ServerJaasConfig((mechanism,), users)
        if self._acls is not None:
            settings["authorizer.class.name"] = STANDARD_AUTHORIZER
            settings["super.users"] = f"User:{SUPER_USER}"
        return settings

    def node_settings(self, controller: str) -> dict[str, object]:
        """Return the settings of a broker that has other nodes, by Kafka's names.

        Args:
            controller: Name of the listener for controllers, to which nodes alone connect.
        """
        name, own = self._protocol.name, f"listener.name.{controller.lower()}"
        settings = self.broker_settings()
        settings["listeners"] = f"{settings['listeners']},{controller}://127.0.0.1:0"
        settings["listener.security.protocol.map"] = f"{name}:{name},{controller}:{name}"
        if self._acls is not None:
            settings["super.users"] = f"User:{SUPER_USER};User:{NODE_USER}"
        if self._tls is not None:
            settings["ssl.truststore.certificates"] = self._tls.trusted
            settings[f"{own}.ssl.client.auth"] = "required"
        if self._protocol.uses_sasl:
            settings["sasl.mechanism.inter.broker.protocol"] = _PLAIN
            settings["sasl.mechanism.controller.protocol"] = _PLAIN
            settings[f"{own}.sasl.enabled.mechanisms"] = _PLAIN
            nodes = {self._node.user: self._node.password}
            for listener, users in ((own, {}), (f"listener.name.{name.lower()}", self._passwords)):
                login = ServerJaasConfig((_PLAIN,), {**users, **nodes}, self._node)
                settings[f"{listener}.plain.sasl.jaas.config"] = login
        return settings

    def client_options(
        self, address: str, user: str | None, mechanism: Mechanism | None
    ) -> ClientOptions:
        """Return the options of a client.

        Args:
            address: Address of the listener.
            user: Name of the user; the super user if None.
            mechanism: SASL mechanism; SCRAM-SHA-512 if None.

        Raises:
            ConfigError: There is no such user, or no such mechanism.
        """
        if user is not None and user not in self._users:
            raise ConfigError(
                f"user: got {describe(user)}, expected one of the cluster's users: "
                f"{', '.join(self._users) or 'it has none'}"
            )
        name = SUPER_USER if user is None else user
        protocol = cast('Literal["SSL", "SASL_PLAINTEXT", "SASL_SSL"]', self._protocol.name)
        options = ClientOptions(bootstrap_servers=address, security_protocol=protocol)
        if self._tls is not None:
            options["ssl_truststore_certificates"] = self._tls.trusted
        if self._tls is not None and self._wants_client_certificates:
            identity = self._tls.of_client(name)
            options["ssl_keystore_key"] = identity.key
            options["ssl_keystore_certificate_chain"] = identity.chain
        if self._protocol.uses_sasl:
            options["sasl_mechanism"] = _checked_mechanism(mechanism)
            options["sasl_username"] = name
            options["sasl_password"] = self._passwords[name].reveal()
        elif mechanism is not None:
            raise ConfigError(f"mechanism: got {describe(mechanism)}, expected none without SASL")
        return options

    def set_up(self, address: str, runtime: Runtime) -> None:
        """Store SCRAM credentials and access rules in the metadata of the running cluster."""
        plain: Mechanism | None = _PLAIN if self._protocol.uses_sasl else None
        with AdminClient(runtime=runtime, **self.client_options(address, None, plain)) as admin:
            for mechanism in SCRAM_MECHANISMS if self._protocol.uses_sasl else ():
                info = ScramCredentialInfo(mechanism, _ITERATIONS)
                admin.alter_user_scram_credentials(
                    UserScramCredentialUpsertion(user, info, password)
                    for user, password in self._passwords.items()
                ).raise_for_errors()
            if self._acls:
                admin.create_acls(self._acls).raise_for_errors()


class _TlsIdentities:
    """Certificates of a cluster and its clients.

    Attributes:
        server: Certificate of the brokers, to their clients and to each other.
        trusted: Certificate of the authority, as PEM text.
    """

    def __init__(self) -> None:
        self._authority = new_authority("EmbeddedCluster")
        self.trusted = self._authority.pem
        self.server = self._authority.issue(NODE_USER, LOCAL_HOSTS)
        self._clients: dict[str, Identity] = {}

    def of_client(self, user: str) -> "Identity":
        """Return the certificate of a user; it is the same with each call."""
        if user not in self._clients:
            self._clients[user] = self._authority.issue(user)
        return self._clients[user]


def _passwords(users: Mapping[str, str] | Collection[str], *, with_sasl: bool) -> dict[str, Secret]:
    if isinstance(users, str) or (with_sasl and not isinstance(users, Mapping)):
        expected = "a dict of passwords by user name" if with_sasl else "names of users"
        raise ConfigError(f"users: got a {type(users).__name__}, expected {expected}")
    passwords = {}
    for name in users:
        text: object = name
        is_name = isinstance(text, str) and _USER_NAME.fullmatch(text)
        if not is_name or text in (SUPER_USER, NODE_USER):
            raise ConfigError(
                f"users: got the name {describe(name)}, expected 1 to 64 ASCII letters, digits and"
                f" . _ @ -, and none of {SUPER_USER} and {NODE_USER}, the cluster's own users"
            )
        password: object = users[name] if isinstance(users, Mapping) else ""
        if not isinstance(password, str) or (with_sasl and not password):
            raise ConfigError(f"users: got no password of {name!r}, expected a text")
        passwords[name] = Secret(password)
    return passwords


def _checked_mechanism(mechanism: Mechanism | None) -> Mechanism:
    if mechanism is None:
        return _DEFAULT_MECHANISM
    if mechanism not in _MECHANISMS:
        raise ConfigError(
            f"mechanism: got {describe(mechanism)}, expected one of {', '.join(_MECHANISMS)}"
        )
    return mechanism
