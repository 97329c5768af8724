"""Gate policy: versioned TOML, checked when read, with the hash that pages show."""

import tomllib
from dataclasses import dataclass, replace
from graphlib import CycleError, TopologicalSorter
from hashlib import sha256
from importlib import resources
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from guardwave.control_plane.core.errors import SettingsError
from guardwave.reducer.rollout.policy import Alarms, GatePolicy, MinimumData
from guardwave.reducer.vocabulary import Gate, Metric

_VARIABLE = "GUARDWAVE_POLICY"

# The largest margin that a policy may set for each metric.
_WIDEST_MARGINS = {
    Metric.COMPLETION: 0.01,
    Metric.DISRUPTION: 0.005,
    Metric.CANCELLATION: 0.005,
    Metric.TOKENS: 1.10,
    Metric.TURNS: 1.10,
    Metric.LATENCY_P95: 1.10,
}
# The metrics that no policy may leave out of a gate.
_IN_BOTH = frozenset({Metric.DISRUPTION, Metric.TOKENS, Metric.TURNS, Metric.LATENCY_P95})
_NEEDED_METRICS = {
    Gate.SHADOW: frozenset[Metric](),
    Gate.WARN: _IN_BOTH | {Metric.CANCELLATION},
    Gate.ENFORCE: _IN_BOTH | {Metric.COMPLETION},
}

_Count = Annotated[int, Field(strict=True)]
_Switch = Annotated[bool, Field(strict=True)]
_Real = Annotated[float, Field(strict=True, allow_inf_nan=False)]
_EnvironmentName = Annotated[str, Field(pattern=r"^[a-z0-9-]{1,48}$")]


class _Section(BaseModel):
    """A section of the policy. A policy may tighten the shipped values and never loosen them."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class _MinimumData(_Section):
    owners: Annotated[_Count, Field(ge=30)] = 30
    effective_owners: Annotated[_Real, Field(ge=10)] = 10.0
    largest_owner_share: Annotated[_Real, Field(gt=0, le=0.25)] = 0.25
    expected_harm_events: Annotated[_Real, Field(ge=10)] = 10.0


class _Alarms(_Section):
    alpha: Annotated[_Real, Field(gt=0, le=0.05)] = 0.05
    lowers_enforce: _Switch = True


class _Environment(_Section):
    requires: tuple[_EnvironmentName, ...] = ()


class _Policy(_Section):
    version: Annotated[str, Field(min_length=1, max_length=64)]
    alpha: Annotated[_Real, Field(gt=0, le=0.05)] = 0.05
    permutations: Annotated[_Count, Field(ge=999, le=99_999)] = 1999
    refined_permutations: Annotated[_Count, Field(ge=9_999, le=999_999)] = 99_999
    stop_band: Annotated[_Real, Field(gt=0, le=0.005)] = 0.005
    planned_power: Annotated[_Real, Field(ge=0.5, lt=1)] = 0.8
    dwell_days: Annotated[_Count, Field(ge=7, le=90)] = 7
    coverage_floor: Annotated[_Real, Field(ge=0.99, le=1)] = 0.99
    contract_floor: Annotated[_Real, Field(ge=0.99, le=1)] = 0.99
    evaluation_max_age_hours: Annotated[_Count, Field(ge=1, le=1_000_000)] = 24
    revision_tolerance: Annotated[_Real, Field(ge=0, le=0.005)] = 0.005
    ceiling_bps: Annotated[_Count, Field(ge=1, le=500)] = 500
    holdback_bps: Annotated[_Count, Field(ge=0, le=9000)] = 2000
    minimum_data: _MinimumData = _MinimumData()
    alarms: _Alarms = _Alarms()
    margins: dict[Gate, dict[Metric, _Real]]
    environments: dict[_EnvironmentName, _Environment] = {}

    @field_validator("margins")
    @classmethod
    def _check_margins(cls, margins: dict[Gate, dict[Metric, float]]) -> dict[Gate, object]:
        for gate in Gate:
            named = margins.get(gate, {})
            missing = sorted(_NEEDED_METRICS[gate] - named.keys())
            if missing:
                raise ValueError(f"the {gate} gate needs a margin for {', '.join(missing)}")
            for metric, margin in named.items():
                least = 1.0 if metric.is_ratio else 0.0
                most = _WIDEST_MARGINS[metric]
                if not least < margin <= most:
                    raise ValueError(
                        f"{gate}.{metric} is {margin}; set it above {least} and to {most} at most"
                    )
        return dict(margins)

    @field_validator("environments")
    @classmethod
    def _check_for_a_cycle(cls, environments: dict[str, _Environment]) -> dict[str, _Environment]:
        required = {name: section.requires for name, section in environments.items()}
        try:
            TopologicalSorter(required).prepare()
        except CycleError as error:
            # The error lists the cycle from required to requiring.
            chain = " requires ".join(reversed(error.args[1]))
            raise ValueError(f"{chain}: no step could be the first; take one of them out") from None
        return environments


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
        return parse(
            resources.files("guardwave.control_plane.core")
            .joinpath("policy.toml")
            .read_text("utf-8")
        )
    try:
        return parse(path.read_text("utf-8"))
    except OSError as error:
        remedy = f"name a readable policy file ({error.strerror})"
    except UnicodeDecodeError as error:
        remedy = f"save it as UTF-8 ({error.reason} at byte {error.start})"
    raise SettingsError(_VARIABLE, str(path), remedy)


def parse(text: str) -> Policies:
    """Return the policies of a TOML text.

    Raises:
        SettingsError: names the first field that is wrong, its value and what is allowed.
    """
    try:
        read = _Policy.model_validate(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(_VARIABLE, "the file", f"mend its TOML: {error}") from None
    except ValidationError as error:
        raise _settings_error(error) from None
    fields = read.model_dump(exclude={"minimum_data", "alarms", "environments", "margins"})
    base = GatePolicy(
        **fields,
        margins={gate: dict(read.margins.get(gate, {})) for gate in Gate},
        minimum_data=MinimumData(**read.minimum_data.model_dump()),
        alarms=Alarms(**read.alarms.model_dump()),
    )
    requires = tuple(
        (name, section.requires) for name, section in sorted(read.environments.items())
    )
    return Policies(base, requires, sha256(text.encode()).hexdigest())


def _settings_error(error: ValidationError) -> SettingsError:
    first = error.errors(include_url=False)[0]
    field = ".".join(str(part) for part in first["loc"])
    value = repr(first.get("input"))
    match first["type"]:
        case "extra_forbidden":
            return SettingsError(_VARIABLE, field, "remove it, no such field is known")
        case "missing":
            return SettingsError(_VARIABLE, field, "add it, there is no default")
        case "value_error":
            # The validators of margins and requirements put the value into the message.
            return SettingsError(_VARIABLE, field, first["msg"].removeprefix("Value error, "))
        case _:
            return SettingsError(_VARIABLE, f"{field} = {value}", first["msg"])
