"""Free ports for servers that need a given one."""

import random
import socket

from tests.support.checks.waiting import HarnessError

# Below the range from which Linux, macOS and Windows assign ports to outgoing connections: a port
# that is free now is not used by a client before the server binds it, or while it restarts.
LOWEST, HIGHEST = 20_000, 32_000
_TRIES = 200
_random = random.SystemRandom()


def free_port(host: str = "127.0.0.1") -> int:
    """Returns a port of `host` that is free now.

    The UDP port of the same number stays bound until this process ends, so that no other process
    that runs tests gets the port before the server binds it.
    """
    for _ in range(_TRIES):
        port = _random.randint(LOWEST, HIGHEST)
        with socket.socket() as probe, socket.socket(type=socket.SOCK_DGRAM) as reservation:
            try:
                reservation.bind((host, port))
                probe.bind((host, port))
            except OSError:
                continue
            reservation.detach()
            return port
    msg = f"no free port: tried {_TRIES} between {LOWEST} and {HIGHEST} on {host}"
    raise HarnessError(msg)
