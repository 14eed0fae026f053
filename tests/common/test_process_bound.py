"""Objects that cannot be copied or sent to another process."""

import copy
import pickle
from collections.abc import Callable

import pytest

from kclient.common.process_bound import ProcessBound


class Client(ProcessBound):
    """An object with threads."""


@pytest.mark.parametrize("use", [pickle.dumps, copy.copy, copy.deepcopy])
def test_client_cannot_be_pickled_or_copied(use: Callable[[object], object]) -> None:
    with pytest.raises(TypeError, match=r"cannot pickle or copy a Client: .* in each process"):
        use(Client())


def test_client_within_another_object_cannot_be_pickled() -> None:
    with pytest.raises(TypeError, match="a Client"):
        pickle.dumps([Client()])


def test_every_pickle_protocol_is_refused() -> None:
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        with pytest.raises(TypeError, match="cannot pickle"):
            pickle.dumps(Client(), protocol)
