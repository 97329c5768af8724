import re

import pytest

from guardwave.control_plane.core import errors
from guardwave.control_plane.core.errors import (
    FieldProblem,
    GuardwaveError,
    InvalidField,
    StoreUnavailable,
)


def _tree(root: type[GuardwaveError]) -> list[type[GuardwaveError]]:
    return [root, *(leaf for branch in root.__subclasses__() for leaf in _tree(branch))]


TREE = [kind for kind in _tree(GuardwaveError) if kind.__module__ == errors.__name__]


@pytest.mark.parametrize("kind", TREE, ids=lambda kind: kind.__name__)
def test_an_error_says_what_it_is(kind):
    assert re.fullmatch(r"[a-z]+(-[a-z]+)*", kind.code)
    assert 400 <= kind.status <= 599
    assert kind.title
    assert kind.__doc__


def test_no_two_errors_share_a_code():
    codes = [kind.code for kind in TREE]
    assert sorted(codes) == sorted(set(codes))


def test_an_invalid_field_points_at_every_refused_member():
    error = InvalidField(
        "share_bps is 12000, set 0 to 10000",
        pointer="/share_bps",
        further=[FieldProblem("/reason", "has 3 characters, give at least 10")],
    )
    assert error.extras["errors"] == [
        {"pointer": "/share_bps", "detail": "share_bps is 12000, set 0 to 10000"},
        {"pointer": "/reason", "detail": "has 3 characters, give at least 10"},
    ]


def test_an_absent_store_asks_to_retry_in_one_second():
    error = StoreUnavailable("the store is loading")
    assert (error.status, error.extras["retry_after_s"]) == (503, 1)


def test_the_extras_of_an_error_do_not_change_under_it():
    given: dict[str, object] = {"verdict": "unproven"}
    error = GuardwaveError("the gate is unproven", extras=given)
    given["verdict"] = "within"
    assert error.extras == {"verdict": "unproven"}
