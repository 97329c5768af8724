"""The OpenAPI document, generated from the code that answers."""

from flask import Blueprint, Response, current_app
from flask_openapi.openapi import OpenAPI

blueprint = Blueprint("document", __name__)


@blueprint.get("/openapi.json")
def openapi() -> Response:
    """Answer the OpenAPI document. It needs no token: it says nothing about any environment."""
    assert isinstance(current_app, OpenAPI)  # the app factory makes no other
    return Response(current_app.json.dumps(current_app.api_doc), mimetype="application/json")
