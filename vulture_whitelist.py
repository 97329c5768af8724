"""Names that are used where neither vulture nor .ci/dead_code.py looks, each with its reason.

One per line, as `_.name  # who uses it`. Code that nothing uses is deleted instead.
"""

_.is_fallback  # agent hosts, of the client's answers
_.ttl_s  # orjson, which writes an assignment as it is
