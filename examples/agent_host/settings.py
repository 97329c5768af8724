"""Settings: the process's environment, and the few values that a project may set."""

from collections.abc import Mapping
from dataclasses import dataclass

from guardwave.guards import ParsedMode, parse_mode

MODEL_URL = "AGENT_MODEL_URL"
MODEL_NAME = "AGENT_MODEL"
GUARD_MODE = "AGENT_GUARD_MODE"
# A project may choose the model and nothing else: a cloned repository must neither switch a guard
# on or off nor send telemetry and credentials elsewhere.
FROM_A_PROJECT = frozenset({MODEL_URL, MODEL_NAME})


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of one process, read once. `mode` is for guards without a control plane."""

    mode: ParsedMode
    model_url: str | None = None
    model_name: str = "stub"
    guardwave_url: str | None = None
    runtime_token: str | None = None
    environment: str = "internal"
    owner: str = "workspace-1"
    version: str = "1.0.0"

    @classmethod
    def read(cls, process: Mapping[str, str], project: Mapping[str, str]) -> "Settings":
        """Read the process's environment, and from a project's `.env` what a project may set."""
        allowed = {name: text for name, text in project.items() if name in FROM_A_PROJECT}
        merged = {**allowed, **process}
        return cls(
            mode=parse_mode(process.get(GUARD_MODE)),
            model_url=merged.get(MODEL_URL),
            model_name=merged.get(MODEL_NAME, "stub"),
            guardwave_url=process.get("GUARDWAVE_URL"),
            runtime_token=process.get("GUARDWAVE_TOKEN"),
            environment=process.get("AGENT_ENVIRONMENT", "internal"),
            owner=process.get("AGENT_OWNER", "workspace-1"),
            version=process.get("AGENT_VERSION", "1.0.0"),
        )


def read_dotenv(text: str) -> Mapping[str, str]:
    """Return the `NAME=value` lines of a `.env` file."""
    pairs = (line.partition("=") for line in text.splitlines() if not line.startswith("#"))
    return {name.strip(): value.strip().strip("'\"") for name, sign, value in pairs if sign}
