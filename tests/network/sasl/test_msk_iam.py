"""Tokens of Amazon MSK: a URL that is signed by SigV4, compared with the signature of botocore."""

import base64
import datetime as dt
import sys
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import parse_qsl, urlsplit

import pytest
from botocore.auth import SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from botocore.exceptions import NoCredentialsError, ProfileNotFound

from kclient.aws import MskIamTokenProvider
from kclient.client.client_config import ClientConfig
from kclient.common.config_def import ConfigDef
from kclient.common.errors import ConfigError
from kclient.common.log_context import NO_LOG_CONTEXT
from kclient.network.sasl.credentials import OAuthBearerToken
from kclient.network.sasl.credentials_loading import credentials_source
from tests.support.checks.document_blocks import blocks
from tests.support.processes.child_process import ROOT, script
from tests.support.virtual.virtual_home import VirtualHome

KEY, SECRET, SESSION = "AKIDEXAMPLE", "canary/secret+key", "canary+session/token=="


def provider(region: str = "eu-west-1", token: str | None = SESSION) -> MskIamTokenProvider:
    session = SimpleNamespace(get_credentials=lambda: Credentials(KEY, SECRET, token))
    return MskIamTokenProvider(region, session=session)


def url_of(token: str) -> str:
    assert "=" not in token
    return base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)).decode()


def signature(region: str, query: dict[str, str]) -> str:
    """Return the signature that botocore computes for the same request."""
    stamp, token = query["X-Amz-Date"], query.get("X-Amz-Security-Token")
    request = AWSRequest(
        "GET", f"https://kafka.{region}.amazonaws.com/", params={"Action": query["Action"]}
    )
    request.context["timestamp"] = stamp
    signer = SigV4QueryAuth(Credentials(KEY, SECRET, token), "kafka-cluster", region, expires=900)
    signer._modify_request_before_signing(request)
    text = signer.string_to_sign(request, signer.canonical_request(request))
    return str(signer.signature(text, request))


@pytest.mark.parametrize("region", ["eu-west-1", "us-gov-east-1"])
@pytest.mark.parametrize("session_token", [SESSION, None])
def test_token_is_a_signed_url(region: str, session_token: str | None) -> None:
    token, expires_at_s = provider(region, session_token).token()
    url = urlsplit(url_of(token))
    assert (url.scheme, url.netloc, url.path) == ("https", f"kafka.{region}.amazonaws.com", "/")
    query = dict(parse_qsl(url.query))
    assert query.pop("User-Agent").startswith("kclient")
    assert query["X-Amz-Signature"] == signature(region, query)
    stamp = dt.datetime.strptime(query["X-Amz-Date"], "%Y%m%dT%H%M%SZ").replace(tzinfo=dt.UTC)
    assert expires_at_s == stamp.timestamp() + 900
    expected = {
        "Action": "kafka-cluster:Connect",
        "X-Amz-Algorithm": "AWS4-HMAC-SHA256",
        "X-Amz-Credential": f"{KEY}/{query['X-Amz-Date'][:8]}/{region}/kafka-cluster/aws4_request",
        "X-Amz-Expires": "900",
        "X-Amz-SignedHeaders": "host",
    }
    if session_token is not None:
        expected["X-Amz-Security-Token"] = session_token
    assert {name: value for name, value in query.items() if name in expected} == expected


def test_client_uses_the_tokens(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(1)
    home = VirtualHome()
    given = provider()
    config = ConfigDef("test", ClientConfig).parse(
        {
            "bootstrap_servers": "a:1",
            "security_protocol": "SASL_SSL",
            "sasl_mechanism": "OAUTHBEARER",
            "sasl_token_provider": given,
        }
    )
    source = credentials_source(config, home.runtime, NO_LOG_CONTEXT)
    assert source is not None
    source.request(lambda: None)
    while not source.done():
        home.sleep(1)
    assert isinstance(source.current(), OAuthBearerToken)
    assert "canary" not in f"{given!r} {config!r} {source.current()!r} {caplog.text}"


def test_credentials_are_those_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    query = dict(parse_qsl(urlsplit(url_of(MskIamTokenProvider("eu-west-1").token()[0])).query))
    query.pop("User-Agent")
    assert query["X-Amz-Signature"] == signature("eu-west-1", query)


def test_missing_credentials_are_an_error() -> None:
    session = SimpleNamespace(get_credentials=lambda: None)
    with pytest.raises(NoCredentialsError):
        MskIamTokenProvider("eu-west-1", session=session).token()
    with pytest.raises(ProfileNotFound):
        MskIamTokenProvider("eu-west-1", profile="missing").token()


def test_wrong_arguments_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    for region in ("", "eu-west-1.evil.example/", 7):
        with pytest.raises(
            ConfigError, match=r"region: got .*, expected the name of an AWS region"
        ):
            MskIamTokenProvider(region)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="profile: got it with session, expected one of them"):
        MskIamTokenProvider("eu-west-1", profile="p", session=SimpleNamespace())
    monkeypatch.setitem(sys.modules, "botocore.session", None)
    with pytest.raises(ConfigError, match="MskIamTokenProvider: the 'botocore' package is missing"):
        MskIamTokenProvider("eu-west-1")


def test_page(tmp_path: Path) -> None:
    *_, code = blocks(ROOT / "docs" / "how-to" / "tls-and-sasl.md", "python")["Tokens"]
    assert "MskIamTokenProvider" in code
    with script(tmp_path, f"{code}\nproducer.close(0)\nprint('closed')") as process:
        process.finish()
        assert process.stdout == "closed\n"
