"""The kinds of values that the API takes: their bounds, patterns and examples."""

import re
from datetime import date
from typing import Annotated, Final

from pydantic import BeforeValidator, Field, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from reducer.rollout.draw import BPS

# A JSON number that every reader holds exactly (RFC 8259, section 6).
LARGEST = 2**53 - 1
MAX_OWNERS_AT_ONCE = 1000

# Patterns are kept to what every dialect of regular expressions reads the same.
_NO_CONTROLS = r"^[^\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]*$"
_VERSION = r"^[!-~]([ -~]*[!-~])?$"
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_KEY = r'^"?[!#-~]{1,255}"?$'


def _whole(value: object) -> object:
    """Take 5.0 for 5: whether a JSON number is whole is a matter of its value, not its spelling."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _day(value: object) -> object:
    """Take YYYY-MM-DD alone: other readers would take 0 for 1970 too."""
    if not isinstance(value, str) or _DAY.fullmatch(value) is None:
        raise ValueError("a day is YYYY-MM-DD")
    return value


class LeftOut:
    """Marks a parameter whose None stands for one that was left out: null cannot be sent."""

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        """Describe the parameter without the null."""
        assert schema["type"] == "nullable"  # it marks nothing but `X | None`
        return handler(schema["schema"])


# Bounds come before this: behind it they would be checked and not documented.
Whole = BeforeValidator(_whole)
LEFT_OUT: Final = LeftOut()
EnvironmentName = Annotated[str, Field(pattern=r"^[a-z0-9-]{1,48}$", examples=["internal"])]
GuardName = Annotated[str, Field(pattern=r"^[a-z0-9_]{1,48}$", examples=["identical_call"])]
Number = Annotated[int, Field(ge=1, le=LARGEST, examples=[1])]
Day = Annotated[date, BeforeValidator(_day)]
# 0 is the wave of owners who were on no roster.
WaveNumber = Annotated[int, Field(ge=0, le=LARGEST, examples=[1])]
StrictNumber = Annotated[int, Field(strict=True, ge=1, le=LARGEST), Whole]
ShareBps = Annotated[
    int, Field(strict=True, ge=1, le=BPS, description="Basis points: 500 is 5 %."), Whole
]
Flag = Annotated[bool, Field(strict=True)]
Why = Annotated[
    str,
    Field(min_length=10, max_length=1000, pattern=_NO_CONTROLS, description="Why, for the audit."),
]
Version = Annotated[str, Field(max_length=64, pattern=_VERSION)]
VersionPin = Annotated[tuple[Version, ...], Field(min_length=1, max_length=16)]
Looks = Annotated[
    tuple[Annotated[int, Field(strict=True, ge=1, le=90), Whole], ...],
    Field(min_length=1, max_length=8, description="Rising numbers of complete days."),
]
Digest = Annotated[str, Field(min_length=1, max_length=128)]
Cursor = Annotated[str, Field(pattern=r"^[a-z0-9_-]{1,64}$")]
# A sequence number, or a place in the store's stream, which is found at once.
AuditPlace = Annotated[str, Field(pattern=r"^[0-9]{1,15}(-[0-9]{1,15})?$")]
Key = Annotated[str, Field(pattern=_KEY)]
