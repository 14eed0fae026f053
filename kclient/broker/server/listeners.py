"""Settings of a broker's listeners: parsing, checks and defaults (Kafka: SocketServerConfigs)."""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from kclient.common.errors import ConfigError
from kclient.network.endpoint import Endpoint, SecurityProtocol

LISTENERS = "listeners"
ADVERTISED = "advertised.listeners"
PROTOCOL_MAP = "listener.security.protocol.map"
INTER_BROKER = "inter.broker.listener.name"
SECURITY_INTER_BROKER = "security.inter.broker.protocol"
CONTROLLERS = "controller.listener.names"
ALLOW_UNAUTHENTICATED = "allow.unauthenticated.listeners"

DEFAULT_PROTOCOL_MAP = ",".join(f"{name}:{name}" for name in SecurityProtocol.__members__)
"""A listener with the name of a security protocol has this protocol."""

_DEFAULT_NAME = SecurityProtocol.PLAINTEXT.name


@dataclass(frozen=True, slots=True)
class ListenerConfig:
    """Listeners of a broker.

    Attributes:
        listeners: Addresses to bind, in the order of the setting.
        advertised: Addresses that clients connect to, in the order of `listeners`; a port 0 means
            the bound port of the listener of the same name.
        inter_broker: Name of the listener that other brokers connect to.
        controllers: Addresses of the listeners for controllers to bind, in the order of their
            names.
        advertised_controllers: Addresses at which other controllers reach them.
    """

    listeners: tuple[Endpoint, ...]
    advertised: tuple[Endpoint, ...]
    inter_broker: str
    controllers: tuple[Endpoint, ...]
    advertised_controllers: tuple[Endpoint, ...]

    def advertised_for(self, bound: Iterable[Endpoint]) -> tuple[Endpoint, ...]:
        """Return the advertised addresses, given those that were bound."""
        ports = {endpoint.name: endpoint.port for endpoint in bound}
        return tuple(
            endpoint._replace(port=endpoint.port or ports[endpoint.name])
            for endpoint in self.advertised
        )

    def controllers_for(self, bound: Iterable[Endpoint]) -> tuple[Endpoint, ...]:
        """Return the addresses at which controllers are reached, given those that were bound."""
        ports = {endpoint.name: endpoint.port for endpoint in bound}
        return tuple(
            endpoint._replace(port=endpoint.port or ports[endpoint.name])
            for endpoint in self.advertised_controllers
        )


def parse_listeners(
    listeners: Sequence[str],
    advertised: Sequence[str] | None,
    *,
    protocol_map: str,
    inter_broker: str | None,
    inter_broker_protocol: str | None,
    controllers: Sequence[str] | None,
) -> ListenerConfig:
    """Return the listeners of a broker from its settings.

    Raises:
        ConfigError: A setting is invalid, or contradicts another.
    """
    names = [name.upper() for name in controllers or ()]
    protocols = parse_protocol_map(protocol_map)
    if protocol_map == DEFAULT_PROTOCOL_MAP:
        protocols = dict.fromkeys(names, SecurityProtocol.PLAINTEXT) | protocols
    given = _parse_all(LISTENERS, listeners, protocols)
    _check_ports(given)
    _check_controllers(names, given, inter_broker)
    reachable = _advertised(given, advertised, protocols, names)
    for_clients = tuple(each for each in reachable if each.name not in names)
    if not for_clients:
        raise ConfigError(
            f"{LISTENERS}: got {', '.join(map(str, given))}, expected one for clients"
        )
    bound = {endpoint.name: endpoint for endpoint in given}
    own = tuple(bound[name] for name in names if name in bound)
    advertised_by_name = {endpoint.name: endpoint for endpoint in reachable}
    return ListenerConfig(
        tuple(endpoint for endpoint in given if endpoint.name not in names),
        for_clients,
        _inter_broker(for_clients, inter_broker, inter_broker_protocol),
        own,
        tuple(advertised_by_name.get(endpoint.name, endpoint) for endpoint in own),
    )


def _check_controllers(
    names: Sequence[str], given: Sequence[Endpoint], inter_broker: str | None
) -> None:
    if names and not any(endpoint.name in names for endpoint in given):
        raise ConfigError(
            f"{CONTROLLERS}: got {', '.join(names)!r:.80}, expected a name of {LISTENERS}: "
            f"{', '.join(endpoint.name for endpoint in given)}"
        )
    if inter_broker is not None and inter_broker.upper() in names:
        raise ConfigError(
            f"{INTER_BROKER}: got {inter_broker!r:.80}, expected no name of {CONTROLLERS}"
        )


def parse_protocol_map(given: str) -> dict[str, SecurityProtocol]:
    """Return security protocols by listener name, from ``NAME:PROTOCOL,…``.

    Raises:
        ConfigError: The text has another form, or names an unknown protocol.
    """
    protocols = {}
    for item in filter(None, map(str.strip, given.split(","))):
        name, _, protocol = (part.strip().upper() for part in item.partition(":"))
        if not name or protocol not in SecurityProtocol.__members__:
            raise ConfigError(
                f"{PROTOCOL_MAP}: got {item!r:.80}, expected 'NAME:PROTOCOL' with one of "
                f"{', '.join(SecurityProtocol.__members__)}"
            )
        protocols[name] = SecurityProtocol[protocol]
    return protocols


def parse_endpoint(option: str, given: str, protocols: Mapping[str, SecurityProtocol]) -> Endpoint:
    """Return the listener written as ``NAME://host:port`` or, named PLAINTEXT, as ``host:port``.

    Raises:
        ConfigError: The text has another form, or the name has no security protocol.
    """
    name, separator, rest = given.partition("://")
    if not separator:
        name, rest = _DEFAULT_NAME, given
    name = name.strip().upper()
    host, colon, port = rest.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not name or not colon or not port.isdecimal() or int(port) > 65535:
        raise ConfigError(
            f"{option}: got {given!r:.80}, expected 'host:port' or 'NAME://host:port'"
        )
    if name not in protocols:
        raise ConfigError(
            f"{option}: got {given!r:.80}, but {PROTOCOL_MAP} has no security protocol for {name}"
        )
    any_address = "0.0.0.0"  # noqa: S104 (named so by Kafka; refused unless allowed)
    return Endpoint(name, host or any_address, int(port), protocols[name])


def _parse_all(
    option: str, given: Sequence[str], protocols: Mapping[str, SecurityProtocol]
) -> tuple[Endpoint, ...]:
    endpoints = tuple(parse_endpoint(option, text, protocols) for text in given)
    if not endpoints:
        raise ConfigError(f"{option}: got none, expected at least one listener")
    for one, other in itertools.combinations(endpoints, 2):
        if one.name == other.name:
            raise ConfigError(f"{option}: got {one} and {other}, expected different names")
    return endpoints


def _check_ports(listeners: Sequence[Endpoint]) -> None:
    """Check that no two listeners have a port, except an IPv4 and an IPv6 address."""
    for one, other in itertools.combinations(listeners, 2):
        is_pair = {one.ip_version, other.ip_version} == {4, 6}
        if one.port == other.port != 0 and not is_pair:
            raise ConfigError(f"{LISTENERS}: got {one} and {other}, expected different ports")


def check_reachability(endpoint: Endpoint) -> None:
    """Check that only this machine reaches a listener that does not authenticate its clients.

    Raises:
        ConfigError: Others reach it.
    """
    if endpoint.is_loopback:
        return
    raise ConfigError(
        f"{LISTENERS}: got {endpoint.address!r}, which other machines can reach, and anyone could "
        f"read and write; listen on 127.0.0.1, authenticate clients, or set "
        f"{ALLOW_UNAUTHENTICATED}=true"
    )


def _advertised(
    listeners: Sequence[Endpoint],
    given: Sequence[str] | None,
    protocols: Mapping[str, SecurityProtocol],
    controllers: Sequence[str],
) -> tuple[Endpoint, ...]:
    """Return the addresses that others connect to; those of controllers need not be given."""
    if given is None:
        for endpoint in listeners:
            if endpoint.is_any_address and endpoint.name not in controllers:
                raise ConfigError(
                    f"{LISTENERS}: got {endpoint.address!r}, which clients cannot connect to; set "
                    f"{ADVERTISED} to the address they can"
                )
        return tuple(listeners)
    advertised = {endpoint.name: endpoint for endpoint in _parse_all(ADVERTISED, given, protocols)}
    names = [endpoint.name for endpoint in listeners]
    for endpoint in advertised.values():
        if endpoint.name not in names:
            raise ConfigError(
                f"{ADVERTISED}: got {str(endpoint)!r:.80}, expected a name of {LISTENERS}: "
                f"{', '.join(names)}"
            )
        if endpoint.is_any_address:
            raise ConfigError(
                f"{ADVERTISED}: got {endpoint.address!r}, which clients cannot connect to; set it "
                "to the address they can"
            )
    return tuple(advertised[name] for name in names if name in advertised)


def _inter_broker(advertised: Sequence[Endpoint], given: str | None, protocol: str | None) -> str:
    """Return the listener for other brokers: PLAINTEXT, or else the first, if none is given."""
    names = [endpoint.name for endpoint in advertised]
    if given is not None and protocol is not None:
        raise ConfigError(
            f"{SECURITY_INTER_BROKER}: got {protocol} with {INTER_BROKER}, expected one of them"
        )
    setting, name = (INTER_BROKER, given) if protocol is None else (SECURITY_INTER_BROKER, protocol)
    if name is None:
        return _DEFAULT_NAME if _DEFAULT_NAME in names else names[0]
    if name.upper() not in names:
        raise ConfigError(
            f"{setting}: got {name!r:.80}, expected an advertised listener: {', '.join(names)}"
        )
    return name.upper()
