"""Authentication at Amazon MSK with credentials of AWS (IAM)."""

import base64
import datetime as dt
import hashlib
import hmac
import re
from importlib import import_module
from typing import Any
from urllib.parse import quote

from kclient.common.config_def import describe
from kclient.common.errors import ConfigError
from kclient.common.extras import missing_package
from kclient.common.system_tasks import SystemClock
from kclient.common.version import VERSION

_REGION = re.compile(r"[a-z0-9]+(-[a-z0-9]+)+", re.ASCII)
_ALGORITHM = "AWS4-HMAC-SHA256"
_SERVICE = "kafka-cluster"
_LIFE_S = 900


class MskIamTokenProvider:
    """Tokens for ``sasl_token_provider`` that a cluster of Amazon MSK with IAM accepts.

    A token is a request that is signed with the credentials (Signature Version 4), and valid for 15
    minutes. The credentials are found as by other programs for AWS: in the environment, in
    configuration files, or from the metadata service. Needs the extra ``aws``.
    """

    def __init__(
        self, region: str, *, profile: str | None = None, session: object | None = None
    ) -> None:
        """Create a provider; credentials are looked up when the first token is needed.

        Args:
            region: AWS region of the cluster, such as ``eu-west-1``.
            profile: Profile of AWS's configuration files.
            session: Session of boto3 or botocore with the credentials, instead of a profile.

        Raises:
            ConfigError: An argument is wrong, or the package botocore is missing.
        """
        name: object = region
        if not isinstance(name, str) or not _REGION.fullmatch(name):
            raise ConfigError(
                f"region: got {describe(region)}, expected the name of an AWS region, such as"
                " 'eu-west-1'"
            )
        if profile is not None and session is not None:
            raise ConfigError("profile: got it with session, expected one of them")
        try:
            import_module("botocore.session")
        except ImportError as error:
            raise ConfigError(missing_package("MskIamTokenProvider", "botocore", "aws")) from error
        self._region = region
        self._profile = profile
        self._session: Any = session

    def token(self) -> tuple[str, float]:
        """Return a token, and its expiry in seconds since the Unix epoch.

        Raises:
            botocore.exceptions.BotoCoreError: There are no credentials.
        """
        signed_at = dt.datetime.fromtimestamp(SystemClock().wall_ms() // 1000, dt.UTC)
        url = _signed_url(self._region, self._credentials(), signed_at)
        url += f"&User-Agent=kclient%2F{VERSION}"
        token = base64.urlsafe_b64encode(url.encode()).decode().rstrip("=")
        return token, signed_at.timestamp() + _LIFE_S

    def _credentials(self) -> Any:
        """Return access key, secret key and session token of one moment."""
        if self._session is None:
            self._session = import_module("botocore.session").Session(profile=self._profile)
        credentials = self._session.get_credentials()
        if credentials is None:
            raise import_module("botocore.exceptions").NoCredentialsError
        return credentials.get_frozen_credentials()


def _signed_url(region: str, credentials: Any, signed_at: dt.datetime) -> str:
    """Return the URL of a presigned request (AWS: Signature Version 4).

    Not by the signer of botocore, which logs the session token at DEBUG.
    """
    host = f"kafka.{region}.amazonaws.com"
    stamp = signed_at.strftime("%Y%m%dT%H%M%SZ")
    scope = (stamp[:8], region, _SERVICE, "aws4_request")
    parameters = {
        "Action": "kafka-cluster:Connect",
        "X-Amz-Algorithm": _ALGORITHM,
        "X-Amz-Credential": "/".join((credentials.access_key, *scope)),
        "X-Amz-Date": stamp,
        "X-Amz-Expires": str(_LIFE_S),
        "X-Amz-SignedHeaders": "host",
    }
    if credentials.token:
        parameters["X-Amz-Security-Token"] = credentials.token
    query = "&".join(
        f"{name}={quote(value, safe='')}" for name, value in sorted(parameters.items())
    )
    request = "\n".join(("GET", "/", query, f"host:{host}\n", "host", _digest("")))
    text = "\n".join((_ALGORITHM, stamp, "/".join(scope), _digest(request)))
    key = f"AWS4{credentials.secret_key}".encode()
    for part in (*scope, text):
        key = hmac.digest(key, part.encode(), "sha256")
    return f"https://{host}/?{query}&X-Amz-Signature={key.hex()}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
