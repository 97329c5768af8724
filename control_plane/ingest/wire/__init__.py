"""Wire format: request bodies, protobuf fields, and the limits on both."""

from guardwave.control_plane.ingest.wire.body import (
    ACCEPTED_CONTENT_ENCODINGS,
    BadBody,
    TooLarge,
    TooSlow,
    UnsupportedEncoding,
    WireError,
    encoding_of,
    read_body,
)
from guardwave.control_plane.ingest.wire.protobuf import (
    FIXED64,
    LARGE,
    LENGTH,
    VARINT,
    Field,
    GroupError,
    check_size,
    fields_of,
    iterate_fields,
    tag_of,
)
from guardwave.control_plane.ingest.wire.quota import (
    Quota,
    check_attribute_count,
    check_bucket_count,
    check_no_repeat,
    check_resource_size,
)

__all__ = [
    "ACCEPTED_CONTENT_ENCODINGS",
    "FIXED64",
    "LARGE",
    "LENGTH",
    "VARINT",
    "BadBody",
    "Field",
    "GroupError",
    "Quota",
    "TooLarge",
    "TooSlow",
    "UnsupportedEncoding",
    "WireError",
    "check_attribute_count",
    "check_bucket_count",
    "check_no_repeat",
    "check_resource_size",
    "check_size",
    "encoding_of",
    "fields_of",
    "iterate_fields",
    "read_body",
    "tag_of",
]
