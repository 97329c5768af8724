"""Names that are used where neither vulture nor .ci/dead_code.py looks, each with its reason.

One per line, as `_.name  # who uses it`. Code that nothing uses is deleted instead.
"""

_.is_fallback  # agent hosts, of the client's answers
_.ttl_s  # orjson, which writes an assignment as it is
_.model_config  # pydantic, how a model is read and written
_.idempotency_key  # flask-openapi, which documents and checks the header
# Clients, of the answers that pydantic writes as JSON:
_.actor_kind
_.evidence_from
_.evidence_to
_.last_seen
_.last_transition
_.owners_changed
_.received
