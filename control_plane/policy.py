"""The gate policy: versioned TOML, checked on reading, with the hash that pages and reports show."""

import tomllib
from dataclasses import dataclass, replace
from hashlib import sha256
from importlib import resources
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from control_plane.errors import SettingsError
from reducer.rollout.policy import GatePolicy, MinimumData
from reducer.vocabulary import Gate, Metric


class _MinimumData(BaseModel):
    """The thresholds may be tightened, never loosened: the bounds are the shipped values."""

    model_config = ConfigDict(extra="forbid")
    owners: int = Field(30, ge=30)
    effective_owners: float = Field(10.0, ge=10.0)
    largest_owner_share: float = Field(0.25, gt=0, le=0.25)
    expected_harm_events: float = Field(10.0, ge=10.0)


class _Environment(BaseModel):
    model_config = ConfigDict(extra="forbid")
    requires: tuple[str, ...] = ()


class _Policy(BaseModel):
    model_config = ConfigDict(extra="forbid")
    version: str = Field(min_length=1, max_length=64)
    alpha: float = Field(0.05, gt=0, le=0.05)
    permutations: int = Field(1999, ge=999, le=99_999)
    refined_permutations: int = Field(99_999, ge=9_999, le=999_999)
    dwell_days: int = Field(7, ge=7, le=90)
    coverage_floor: float = Field(0.99, ge=0.99, le=1)
    contract_floor: float = Field(0.99, ge=0.99, le=1)
    evaluation_max_age_hours: int = Field(24, ge=1)
    revision_tolerance: float = Field(0.005, ge=0, le=0.005)
    ceiling_bps: int = Field(500, ge=1, le=500)
    holdback_bps: int = Field(2000, ge=0, le=9000)
    minimum_data: _MinimumData = _MinimumData()
    margins: dict[Gate, dict[Metric, float]]
    environments: dict[str, _Environment] = {}


@dataclass(frozen=True, slots=True)
class Policies:
    """The policy in force, for any environment."""

    base: GatePolicy
    requires: tuple[tuple[str, tuple[str, ...]], ...]
    hash: str

    def of(self, environment: str) -> GatePolicy:
        """Return the policy of one environment."""
        return replace(self.base, requires=dict(self.requires).get(environment, ()))


def load(path: Path | None) -> Policies:
    """Return the policies in the file, or the shipped ones.

    Raises:
        SettingsError: the file cannot be read, is not TOML or has a value out of its range.
    """
    if path is None:
        text = resources.files("control_plane").joinpath("policy.toml").read_text("utf-8")
    else:
        try:
            text = path.read_text("utf-8")
        except OSError as error:
            raise SettingsError(
                "GUARDWAVE_POLICY", str(path), f"name a readable policy file ({error.strerror})"
            ) from None
    return parse(text)


def parse(text: str) -> Policies:
    """Return the policies of a TOML text.

    Raises:
        SettingsError: names the first field that is wrong, its value and what is allowed.
    """
    try:
        read = _Policy.model_validate(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise SettingsError("GUARDWAVE_POLICY", "the file", f"mend its TOML: {error}") from None
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"])
        value = repr(first.get("input"))
        raise SettingsError("GUARDWAVE_POLICY", f"{field} = {value}", first["msg"]) from None
    fields = read.model_dump(exclude={"minimum_data", "environments", "margins"})
    base = GatePolicy(
        **fields,
        margins={gate: dict(read.margins.get(gate, {})) for gate in Gate},
        minimum_data=MinimumData(**read.minimum_data.model_dump()),
    )
    requires = tuple((name, each.requires) for name, each in sorted(read.environments.items()))
    return Policies(base, requires, sha256(text.encode()).hexdigest())
