"""Types of an admin client's options, for type checkers."""

from kclient.client.client_options import ClientOptions


class AdminOptions(ClientOptions, total=False):
    """Keyword options of `AdminClient`."""

    default_api_timeout_ms: int
