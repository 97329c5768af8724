"""Names that are used where neither vulture nor .ci/dead_code.py looks, each with its reason.

One per line, as `_.name  # who uses it`. Code that nothing uses is deleted instead.
"""

_.__dir__  # notebooks, when they complete a name of analysis
_.is_fallback  # agent hosts, of the client's answers
_.attach  # a host's connections, of the example's session
_.do_POST  # http.server, by name
_.format  # as above, of log_message
_.log_message  # as above
_.violated  # agent hosts, of what they saw themselves
_.ttl_s  # orjson, which writes an assignment as it is
_.exported_at  # as above, the head of an archive
_.model_config  # pydantic, how a model is read and written
_.schema_  # pydantic, a member of an evidence bundle
_.service  # grpc, which asks a handler for the method it was called by
_.idempotency_key  # flask-openapi, which documents and checks the header
_.gettimeout  # gunicorn's parser, when it reads on after an answer
_.settimeout  # as above
_.nr_conns  # gunicorn's loop, which accepts by it
# Clients, of the answers that pydantic writes as JSON:
_.actor_kind
_.evidence_from
_.evidence_to
_.last_seen
_.last_transition
_.owners_changed
_.received
_.retry_after_s
# The telemetry contract: accepted and checked, read by checks that follow.
_.batch_bucket
_.error_type
_.failure_bucket
_.history_preserved
_.offset_seconds
_.ordinal
_.tool_type
# evidence_digest and whoever exports evidence, of whole owner-days
_.guard_stopped
_.stopped
_.tokens_untold
_.turns_untold
_.unreliable
_.would_stopped
_.workers  # gunicorn_conf.py, which vulture skips
_.WebWorker  # gunicorn_conf.py names it
_.handle_error  # gunicorn, of a worker
_.addr  # gunicorn, by position
_.order  # dataclasses, to compare what is due at the same time
_.format_commands  # click, which writes help by it
_.settle  # agent hosts, when the last call of a batch has settled
# agent hosts, of the side-effect guard: the typed error, and the two doors to what they keep
_.arguments_digest
_.first_call_id
_.find_candidate
_.xid_of
_.__getattr__  # Python, of `guardwave.analysis` in a notebook
_.variance_of_rate  # notebooks, which plan before there is any data
_.with_ratio_margin  # benchmarks/proof and tests, which inject an amount the plain way
_.collect  # prometheus_client, which asks a collector for its series
_.remedies  # the API, which answers with the counts of intake's health as they are
