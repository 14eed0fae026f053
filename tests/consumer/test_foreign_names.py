"""Names of other clients: none exists here, and each hint names something that does."""

import inspect
import re
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from kclient import AdminClient
from kclient.consumer import Consumer, ConsumerRecords
from kclient.consumer.foreign_names import (
    CLOSE,
    COMMIT,
    CONSUMER_NAMES,
    POLL,
    RECORDS_NAMES,
    SUBSCRIBE,
    TIMEOUT,
)

METHOD = re.compile(r"\b([a-z_]+)\(")
KEYWORD = re.compile(r"\b([a-z_]+)=(?!\w*')")
OPTIONS = {"isolation_level"}


@pytest.mark.parametrize(
    ("kind", "names"), [(Consumer, CONSUMER_NAMES), (ConsumerRecords, RECORDS_NAMES)]
)
def test_foreign_attributes_do_not_exist_and_hints_name_methods(
    kind: type, names: Mapping[str, str]
) -> None:
    for name, hint in names.items():
        with pytest.raises(AttributeError, match=re.escape(hint)):
            getattr(kind, name)
        owner = AdminClient if "AdminClient" in hint else kind
        for method in METHOD.findall(hint):
            assert callable(getattr(owner, method, None)) or method in {"len", "next"}, hint


@pytest.mark.parametrize(
    ("call", "names"),
    [
        (Consumer.poll, POLL),
        (Consumer.subscribe, SUBSCRIBE),
        (Consumer.commit, COMMIT),
        (Consumer.close, CLOSE),
        (Consumer.position, TIMEOUT),
    ],
)
def test_foreign_keywords_are_no_parameters_and_hints_name_parameters(
    call: Callable[..., Any], names: Mapping[str, str]
) -> None:
    parameters = inspect.signature(call).parameters
    assert not names.keys() & parameters.keys()
    for hint in names.values():
        for keyword in KEYWORD.findall(hint):
            assert keyword in parameters, hint
        for method in METHOD.findall(hint):
            assert callable(getattr(Consumer, method)), hint
