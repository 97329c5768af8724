"""Rejected requests: an error names the place in the request and what would be accepted."""

import inspect
import re
from collections.abc import Iterator

import pytest
from pydantic import BaseModel, ValidationError

from guardwave.control_plane.core.errors import InvalidField
from guardwave.control_plane.http.middleware.validation import reject_invalid
from guardwave.control_plane.http.schema import bodies, parameters
from tests.control_plane.http.conftest import PLACE, REASON, assert_problem

# Terms of pydantic and Python that mean nothing to the sender of JSON.
INSIDE = re.compile(r"constrained|tuple|after validation|function-|\bNone\b|nullable|dict|instance")
WRONG: list[object] = [
    None,
    True,
    "~~",
    "",
    1.5,
    -1,
    2**60,
    [],
    ["~"],
    [None],
    [[]],
    [{}],
    ["a"] * 2000,
    {},
]


def models() -> Iterator[type[BaseModel]]:
    for module in (bodies, parameters):
        for _, model in inspect.getmembers(module, inspect.isclass):
            if issubclass(model, BaseModel) and model.__module__ == module.__name__:
                yield model


MEMBERS = [
    pytest.param(model, field.alias or name, id=f"{model.__name__}.{name}")
    for model in models()
    for name, field in model.model_fields.items()
]


@pytest.mark.parametrize(("model", "member"), MEMBERS)
def test_every_member_is_rejected_at_its_place_and_in_plain_words(model, member):
    found = [(wrong, problem) for wrong in WRONG for problem in errors_of(model, {member: wrong})]
    assert found or model.__name__ == "IfMatch"
    for wrong, problem in found:
        assert not INSIDE.search(problem["detail"]), problem
        first, *deeper = problem["pointer"].removeprefix("/").split("/")
        assert first != member or _resolves(wrong, deeper), problem


def errors_of(model: type[BaseModel], sent: object) -> list[dict[str, str]]:
    """Return what is refused of the JSON, as problem documents list it; nothing if it is taken."""
    try:
        model.model_validate(sent)
    except ValidationError as error:
        with pytest.raises(InvalidField) as raised:
            reject_invalid(error)
        problems = raised.value.extras["errors"]
        assert isinstance(problems, list)
        return problems
    return []


def _resolves(value: object, path: list[str]) -> bool:
    """Whether the pointer names a part of what was sent, or a member that is missing there."""
    for at, part in enumerate(path):
        if isinstance(value, list) and part.isdecimal() and int(part) < len(value):
            value = value[int(part)]
        else:
            return isinstance(value, dict) and at == len(path) - 1
    return True


@pytest.mark.parametrize(
    ("method", "path", "body", "pointer", "message"),
    [
        pytest.param(
            "PUT", PLACE, {"requires": ["a"] * 17}, "/requires", "at most", id="a list too long"
        ),
        pytest.param(
            "PUT",
            f"{PLACE}/guards/g",
            {"version_pin": []},
            "/version_pin",
            "it has 0 items; give at least 1",
            id="an empty list",
        ),
        pytest.param(
            "POST",
            f"{PLACE}/owners",
            {"owners": "alice"},
            "/owners",
            "send a JSON array",
            id="a text for a list",
        ),
        pytest.param(
            "POST",
            f"{PLACE}/owners",
            {"owners": ["alice"]},
            "/owners/0",
            "send a JSON object",
            id="a text for an object",
        ),
        pytest.param(
            "GET",
            "/api/v1/audit-events?environment=internal&after=x",
            None,
            "/after",
            "",
            id="after",
        ),
        pytest.param("GET", f"{PLACE}/rollbacks?cursor=x", None, "/cursor", "", id="a cursor"),
    ],
)
def test_a_refused_list_or_parameter_names_its_place_and_the_remedy(
    admin, rollout, method, path, body, pointer, message
):
    sent = None if body is None else {"reason": REASON, **body}
    document = assert_problem(admin.ask(method, path, body=sent), 400, "invalid-field")
    assert [error["pointer"] for error in document["errors"]] == [pointer]
    assert message in document["detail"]
    assert not INSIDE.search(document["detail"])
