"""Numbers of the APIs."""

import pytest
from kafka.protocol.api_key import ApiKey as KafkaPythonApiKey

from kclient.protocol.api_keys import ApiKey
from kclient.protocol.message import Request
from kclient.protocol.registry import REQUESTS
from tests.protocol.check_facts import snake_case


def test_every_number_up_to_the_newest_has_one_name() -> None:
    assert [*ApiKey] == [*range(len(ApiKey))]
    assert len(ApiKey.__members__) == len(ApiKey)  # a repeated number would be an alias


@pytest.mark.parametrize("request_type", REQUESTS.values(), ids=lambda kind: kind.__name__)
def test_requests_are_named_as_their_api(request_type: type[Request]) -> None:
    name = request_type.__name__.removesuffix("Request")
    assert ApiKey[snake_case(name).upper()] is request_type.api_key


def test_numbers_are_those_of_kafka_python() -> None:
    theirs = {snake_case(each.name).upper(): each.value for each in KafkaPythonApiKey}
    assert len(theirs.keys() & ApiKey.__members__) > 80
    assert {name: ApiKey[name] for name in theirs if name in ApiKey.__members__}.items() <= (
        theirs.items()
    )
