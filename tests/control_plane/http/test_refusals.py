"""What is refused of a request is told in its own words: a place in it, and what would do."""

import inspect
import re
from collections.abc import Iterator

import pytest
from pydantic import BaseModel, ValidationError

from control_plane.errors import InvalidField
from control_plane.http import bodies, parameters
from control_plane.http.validation import refuse
from tests.control_plane.http.conftest import PLACE, REASON, assert_problem

# Words of pydantic's and Python's that say nothing to who sent the JSON.
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
def test_every_member_is_refused_at_its_own_place_and_in_plain_words(model, member):
    found = [(wrong, each) for wrong in WRONG for each in refused(model, {member: wrong})]
    assert found or model.__name__ == "IfMatch"
    for wrong, problem in found:
        assert not INSIDE.search(problem["detail"]), problem
        first, *deeper = problem["pointer"].removeprefix("/").split("/")
        assert first != member or _leads_somewhere(wrong, deeper), problem


def refused(model: type[BaseModel], sent: object) -> list[dict[str, str]]:
    """Return what is refused of the JSON, as problem documents list it; nothing if it is taken."""
    try:
        model.model_validate(sent)
    except ValidationError as error:
        with pytest.raises(InvalidField) as raised:
            refuse(error)
        problems = raised.value.extras["errors"]
        assert isinstance(problems, list)
        return problems
    return []


def _leads_somewhere(value: object, path: list[str]) -> bool:
    """Whether the pointer names a part of what was sent, or a member that is missing there."""
    for at, part in enumerate(path):
        if isinstance(value, list) and part.isdecimal() and int(part) < len(value):
            value = value[int(part)]
        else:
            return isinstance(value, dict) and at == len(path) - 1
    return True


@pytest.mark.parametrize(
    ("method", "path", "body", "pointer", "said"),
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
    admin, rollout, method, path, body, pointer, said
):
    sent = None if body is None else {"reason": REASON, **body}
    document = assert_problem(admin.ask(method, path, body=sent), 400, "invalid-field")
    assert [each["pointer"] for each in document["errors"]] == [pointer]
    assert said in document["detail"]
    assert not INSIDE.search(document["detail"])
