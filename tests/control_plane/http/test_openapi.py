"""OpenAPI document: complete, true to the code, and tried by a property-based tester."""

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
JSON = "application/json"
METHODS = {"get", "put", "post", "delete"}


def test_the_document_is_open_to_everybody(app):
    response = app.test_client().get("/api/v1/openapi.json")
    assert response.status_code == 200
    assert response.get_json()["openapi"] == "3.1.0"


def test_every_route_of_the_api_is_documented(app):
    documented = {
        (path, method.upper())
        for path, item in app.test_client().get("/api/v1/openapi.json").get_json()["paths"].items()
        for method in METHODS & item.keys()
    }
    routed = {
        (str(rule).replace("<int:", "{").replace("<", "{").replace(">", "}"), method)
        for rule in app.url_map.iter_rules()
        for method in (rule.methods or set()) - {"HEAD", "OPTIONS"}
        if str(rule).startswith("/api/v1/") and rule.endpoint != "api.document.openapi"
    }
    assert documented == routed


def test_every_operation_documents_what_it_does_and_how_it_fails(app):
    document = app.test_client().get("/api/v1/openapi.json").get_json()
    streamed = "/api/v1/environments/{environment}/guards/{guard}/evidence"
    answered = {streamed: "application/x-ndjson"}
    for path, item in document["paths"].items():
        for method in METHODS & item.keys():
            operation = item[method]
            assert operation["summary"], path
            assert {"400", "401", "403", "404", "503"} <= operation["responses"].keys()
            assert operation["security"] == [{"token": []}]
            for status, response in operation["responses"].items():
                kind = "application/problem+json" if status >= "400" else answered.get(path, JSON)
                assert list(response["content"]) == [kind], (path, method, status)


def test_every_reference_resolves(app):
    text = app.test_client().get("/api/v1/openapi.json").text
    document = app.test_client().get("/api/v1/openapi.json").get_json()
    named = {part.split('"')[0] for part in text.split("#/components/schemas/")[1:]}
    assert named <= document["components"]["schemas"].keys()


def test_a_property_based_tester_finds_no_fault(address, admin, rollout, tmp_path):
    run = subprocess.run(
        [
            Path(sys.executable).with_name("schemathesis"),
            "--config-file",
            HERE / "schemathesis.toml",
            "run",
            f"{address}/api/v1/openapi.json",
            "--header",
            f"Authorization: Bearer {admin.token}",
            "--checks=all",
            "--phases=examples,coverage,fuzzing",
            "--max-examples=10",
            "--generation-deterministic",
            "--no-color",
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert run.returncode == 0, run.stdout[-20_000:]
