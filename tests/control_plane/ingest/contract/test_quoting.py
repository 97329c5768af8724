"""Values in rejections: words and numbers are quoted, possible content never is."""

import orjson
import pytest

from guardwave.control_plane.ingest.contract import limits
from guardwave.control_plane.ingest.decode.otlp_json.bodies import decode_logs
from guardwave.control_plane.ingest.model.otlp_values import KeyValues
from guardwave.control_plane.ingest.model.rejections import Rejection
from guardwave.reducer import contract
from tests.support.otlp.bodies import LIMITS, RESOURCE, TRANSITION, read_one


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        pytest.param("guessed", "is 'guessed', not", id="a word"),
        pytest.param(
            "/home/ana/notes.txt", "is a string of 19 characters, not", id="what may be a path"
        ),
        pytest.param("it went wrong", "is a string of 13 characters, not", id="a sentence"),
        pytest.param("x" * 41, "is a string of 41 characters, not", id="a long word"),
        pytest.param(7, "is 7, not", id="a number"),
        pytest.param(True, "is True, not", id="a boolean"),
        pytest.param(10**17 + 0.5, "is 1e+17, not", id="a double"),
        pytest.param(b"secret", "is of type bytes, not", id="bytes"),
        pytest.param(("secret",), "is of type tuple, not", id="a list"),
        pytest.param(KeyValues((("k", "secret"),)), "is of type KeyValues, not", id="a map"),
    ],
)
def test_a_rejection_quotes_words_and_numbers_only(value, shown):
    (rejected,) = read_one({**TRANSITION, contract.DECISION: value}).rejected
    assert rejected.detail.startswith(f"{contract.DECISION} {shown} one of reset, tracked")


@pytest.mark.parametrize(
    ("attributes", "resource"),
    [
        pytest.param({contract.GUARD: "Canary-7"}, {}, id="a guard"),
        pytest.param({contract.ERROR_TYPE: "Canary:7"}, {}, id="an error type"),
        pytest.param({}, {limits.ENVIRONMENT: "Canary-7"}, id="another environment"),
        pytest.param({}, {limits.OLDER_ENVIRONMENT: "Canary-7"}, id="two environments"),
    ],
)
def test_a_rejection_shows_a_name_by_its_field_and_length_only(attributes, resource):
    decoded = read_one({**TRANSITION, **attributes}, resource={**RESOURCE, **resource})
    (rejected,) = decoded.rejected
    assert "Canary" not in rejected.detail
    assert "of 8" in rejected.detail
    assert next(iter({**attributes, **resource})) in rejected.detail


CONTENT = "rm -rf /home/ana"


@pytest.mark.parametrize(
    ("record", "shown"),
    [
        pytest.param(
            {"attributes": [{"key": "n", "value": {"intValue": CONTENT}}]},
            "n is a string of 16 characters, not a whole number",
            id="a number",
        ),
        pytest.param(
            {"attributes": [{"key": "n", "value": {"boolValue": {CONTENT: CONTENT}}}]},
            "n is of type dict, not true or false",
            id="a boolean",
        ),
        pytest.param(
            {"attributes": [{"key": CONTENT, "value": {"intValue": "many"}}]},
            "an attribute is 'many', not a whole number",
            id="a key",
        ),
        pytest.param({"attributes": [CONTENT]}, "an attribute is a string of 16", id="a pair"),
        pytest.param({"traceId": CONTENT}, "traceId is a string of 16", id="an id"),
        pytest.param({"eventName": [CONTENT]}, "eventName is of type list", id="a name"),
    ],
)
def test_what_cannot_be_read_as_json_is_quoted_no_more_than_that(record, shown):
    body = {"resourceLogs": [{"scopeLogs": [{"logRecords": [record]}]}]}
    ((item,),) = (scope.items for scope in decode_logs(orjson.dumps(body), limits=LIMITS)[0].scopes)
    assert isinstance(item, Rejection)
    assert item.detail.startswith(shown)
    assert CONTENT not in item.detail


def test_the_version_of_a_scope_is_quoted_no_more_than_that():
    (rejected,) = read_one(TRANSITION, scope=(contract.SCOPE, CONTENT)).rejected
    assert rejected.detail.startswith("the scope's version is a string of 16 characters")
