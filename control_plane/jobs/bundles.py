"""Evidence bundles: all that a verdict rests on, stored with it so that it can be replayed."""

import gzip
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from hashlib import sha256

from pydantic import ValidationError

from guardwave.analysis.frames import Share, WaveDay
from guardwave.control_plane.jobs.owner_day_table import OwnerDayTable
from guardwave.control_plane.stores.codec import decode, encode
from guardwave.reducer.rollout.policy import GatePolicy
from guardwave.reducer.rollout.state import EvidenceSource, Wave
from guardwave.reducer.vocabulary import Gate, Invariant, Mode

SCHEMA = 1
# Compressed. A value of the store ends at 512 MiB; a roster of a million owners fits in this.
MAX_BYTES = 256 << 20
# Of gzip: its best level saves an eighth of a bundle and takes thirty times as long.
_LEVEL = 4


@dataclass(frozen=True, slots=True)
class BaselineDays:
    """The last complete days of the phase below, under the same version pin."""

    wave: int
    phase: Mode
    days: tuple[date, ...]
    owner_days: OwnerDayTable


@dataclass(frozen=True, slots=True)
class GatheredEvidence:
    """The evidence of one wave for one gate, and the rules to judge it by.

    `policy` is the one in force, with its alpha split over the wave's looks. `owner_days` are those
    of the declared look's days. `roster` lists pseudonyms in draw order, none in shadow. `seed` is
    that of the random owner sets, from environment, guard and wave. `contract` is the share of the
    last complete day, or of a later one that its records keep from counting; None without such a
    day or without records. `source` is the source of the owner-days. `is_latch_full` means that
    there may be further violations, which a full latch did not record.
    """

    environment: str
    guard: str
    gate: Gate
    wave: Wave
    declared_days: int
    days: tuple[WaveDay, ...]
    owner_days: OwnerDayTable
    contract: Share | None
    violations: Mapping[Invariant, int]
    roster: tuple[str, ...]
    baseline: BaselineDays | None
    policy: GatePolicy
    policy_hash: str
    code_version: str
    seed: str
    source: EvidenceSource = EvidenceSource.EVENTS
    is_latch_full: bool = False

    @property
    def digest(self) -> str:
        """SHA-256, hexadecimal, of its JSON: an evaluation's `evidence_digest`."""
        return sha256(encode(self)).hexdigest()


@dataclass(frozen=True, slots=True)
class Bundle:
    """The evidence of one evaluation, and its result as JSON text."""

    schema: int
    evaluation: int
    digest: str
    result: str
    gathered: GatheredEvidence

    def packed(self) -> bytes:
        """Return the bundle as compressed JSON; the same bundle gives the same bytes.

        Raises:
            ValueError: it is larger than a bundle may be.
        """
        packed = gzip.compress(encode(self), compresslevel=_LEVEL, mtime=0)
        if len(packed) > MAX_BYTES:
            raise ValueError(
                f"the evidence bundle has {len(packed):,} bytes, {MAX_BYTES:,} are kept at most"
            )
        return packed


def unpack_bundle(content: bytes) -> Bundle:
    """Return the bundle in a file or an answer, compressed or not.

    Raises:
        ValueError: names the first wrong field, or the reason why the content is no bundle.
    """
    try:
        text = gzip.decompress(content) if content.startswith(b"\x1f\x8b") else content
        bundle = decode(Bundle, text)
    except (OSError, EOFError, zlib.error) as error:
        raise ValueError(f"the bundle cannot be decompressed: {error}") from error
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"]) or "the bundle"
        raise ValueError(f"this is no evidence bundle: {where}: {first['msg']}") from error
    if bundle.schema != SCHEMA:
        raise ValueError(
            f"the bundle has schema {bundle.schema}, this version reads {SCHEMA}; use guardwave "
            f"{bundle.gathered.code_version}"
        )
    return bundle
