"""Every key of the store, made here and nowhere else.

All control-plane keys of an environment share the slot `{environment}`; all evidence of an owner
shares `{environment:shard}`, so that one atomic function call may touch them on a cluster.
"""

from dataclasses import dataclass
from datetime import date

ENVIRONMENTS = "{guardwave}:environments"
TOKENS = "{guardwave}:tokens"
TOKENS_REVISION = "{guardwave}:tokens:revision"
STORE_ID = "{guardwave}:store"
SESSION_KEY = "{guardwave}:session-key"
DEMO = "{guardwave}:demo"
SHARD = 0


def session(digest: str) -> str:
    """A signed-in browser, by the digest of what its cookie holds."""
    return f"{{guardwave}}:session:{digest}"


def sign_in_code(digest: str) -> str:
    """A one-time sign-in link, by the digest of its code."""
    return f"{{guardwave}}:code:{digest}"


@dataclass(frozen=True, slots=True)
class EnvironmentKeys:
    """Control-plane keys of one environment."""

    environment: str

    @property
    def state(self) -> str:
        """HASH: name, requires, keys, latch, head of the audit chain, revision, guards."""
        return f"env:{{{self.environment}}}"

    @property
    def audit(self) -> str:
        """STREAM of audit entries, hash-chained."""
        return f"audit:{{{self.environment}}}"

    @property
    def violations(self) -> str:
        """HASH record identity -> violation."""
        return f"vi:{{{self.environment}}}"

    @property
    def rollbacks(self) -> str:
        """HASH id -> rollback record."""
        return f"rb:{{{self.environment}}}"

    @property
    def jobs(self) -> str:
        """LIST of jobs that wait for the worker."""
        return f"jobs:{{{self.environment}}}"

    @property
    def taken_jobs(self) -> str:
        """LIST of jobs that the lease's holder works on."""
        return f"jobs:{{{self.environment}}}:taken"

    @property
    def lease(self) -> str:
        """STRING: which worker holds the environment's jobs."""
        return f"lease:{{{self.environment}}}"

    @property
    def importing(self) -> str:
        """STRING: which import of evidence is under way."""
        return f"im:{{{self.environment}}}"

    @property
    def heartbeats(self) -> str:
        """ZSET of wall-clock seconds in which intake over HTTP was up, every 20 s."""
        return f"hb:{{{self.environment}}}"

    @property
    def grpc_heartbeats(self) -> str:
        """The same of intake over gRPC, on days on which it is opened."""
        return f"hb:{{{self.environment}}}:grpc"

    def rollout(self, guard: str) -> str:
        """STRING: the rollout of a guard."""
        return f"ro:{{{self.environment}}}:{guard}"

    def wave(self, guard: str, number: int) -> str:
        """STRING: one wave."""
        return f"wave:{{{self.environment}}}:{guard}:{number}"

    def roster(self, guard: str, number: int) -> str:
        """STRING: packed pseudonyms in draw order."""
        return f"roster:{{{self.environment}}}:{guard}:{number}"

    def evaluation(self, guard: str, number: int) -> str:
        """HASH: request, status and immutable result of a gate evaluation."""
        return f"ge:{{{self.environment}}}:{guard}:{number}"

    def bundle(self, guard: str, number: int) -> str:
        """STRING: the packed evidence bundle of a gate evaluation."""
        return f"gb:{{{self.environment}}}:{guard}:{number}"

    def evaluation_count(self, guard: str) -> str:
        """Counter of gate evaluations: their numbers."""
        return f"ge:{{{self.environment}}}:{guard}"

    def harm_looks(self, guard: str) -> str:
        """HASH wave:number -> a look for harm."""
        return f"hm:{{{self.environment}}}:{guard}"

    def promotion(self, guard: str, number: int) -> str:
        """STRING: one promotion."""
        return f"pr:{{{self.environment}}}:{guard}:{number}"

    def promotion_count(self, guard: str) -> str:
        """Counter of promotions: their numbers."""
        return f"pr:{{{self.environment}}}:{guard}"

    def plan(self, guard: str, number: int) -> str:
        """STRING: one plan of a wave to come."""
        return f"pl:{{{self.environment}}}:{guard}:{number}"

    def plan_count(self, guard: str) -> str:
        """Counter of plans: their numbers."""
        return f"pl:{{{self.environment}}}:{guard}"

    def idempotency(self, digest: str) -> str:
        """HASH: the stored answer of one Idempotency-Key."""
        return f"idem:{{{self.environment}}}:{digest}"


@dataclass(frozen=True, slots=True)
class EvidenceKeys:
    """Evidence keys of one shard of an environment."""

    environment: str
    shard: int = SHARD

    @property
    def slot(self) -> str:
        """The hash tag that all keys of the shard share, braces included."""
        return f"{{{self.environment}:{self.shard}}}"

    @property
    def cells(self) -> str:
        """HASH cell name -> small integer, `#` and the integer -> name, `#` -> the last integer.

        `#` and the name -> the number of the day on which it was used last and the budget that it
        counts in; a budget, `#vouched:` or `#volume:` and the producer -> how many it brought.
        """
        return f"cells:{self.slot}"

    @property
    def facts(self) -> str:
        """HASH pseudonym -> facts that a person or an import stated."""
        return f"of:{self.slot}"

    @property
    def sightings(self) -> str:
        """HASH pseudonym -> versions, producers and days learned from accepted records."""
        return f"ow:{self.slot}"

    @property
    def owner_changes(self) -> str:
        """ZSET pseudonym -> number of the last change of its facts or sightings."""
        return f"oc:{self.slot}"

    @property
    def owner_change_count(self) -> str:
        """Counter behind `owner_changes`."""
        return f"on:{self.slot}"

    @property
    def due(self) -> str:
        """ZSET prompt state key suffix -> second at which the prompt is lost."""
        return f"due:{self.slot}"

    @property
    def suspects(self) -> str:
        """ZSET prompt state key suffix -> second at which a delayed invariant is decided."""
        return f"iv:{self.slot}"

    @property
    def health(self) -> str:
        """HASH of intake counters and the last record's time."""
        return f"hl:{self.slot}"

    @property
    def sources(self) -> str:
        """HASH of intake counters by producer, version and counter, as a JSON array."""
        return f"hs:{self.slot}"

    @property
    def instances(self) -> str:
        """HASH digest of a process -> JSON: counts of what its clock or its deltas got wrong."""
        return f"hi:{self.slot}"

    @property
    def treated(self) -> str:
        """HASH of records by guard, mode above shadow and generation of their assignment ids."""
        return f"ti:{self.slot}"

    def stream(self, suffix: str) -> str:
        """STRING: what is known of a stream of metric points."""
        return f"cs:{self.slot}:{suffix}"

    @property
    def days(self) -> str:
        """SET of days that hold anything."""
        return f"dys:{self.slot}"

    def day(self, day: date) -> str:
        """HASH of the day's seal and of its sums over this shard.

        Of the seal, `sealed_at` is when the day was sealed, `outage` the longest outage of intake
        in seconds ('' when no heartbeat tells), `revision` how often a sum changed since.

        Of prompts by events: `h0` to `h23` are those that started in each hour (an end without a
        start counts as one), `ended` those of them that ended, `covered` those whose records are
        all there, `called` those that called tools of hosts that tell of prompts in parts,
        `told:` and a version those that trusted producers told of.

        Of records: `records` of the contract check, `conforming` those of them that met the
        contract, `unnumbered` transitions without a sequence number.

        Of metric points, with what came since the day before, across midnight, beside it once more
        under `_since`: `counted` and `counted_since` are transitions that hosts without sequence
        numbers count (`SHOWS` 1 in the Lua library), `witnessed` and `witnessed_since` what other
        counters of such hosts count (`SHOWS` 2); `shown:` and `shown_since:`, with guard, `|` and
        version, starts that counters of trusted producers count. `smeared` are points that tell of
        a midnight's both sides, `overflowed` those whose attributes an SDK left out.

        With `c` before their names `h0` to `h23`, `ended`, `records`, `conforming`, `smeared` and
        `overflowed` are the same of evidence by counters, which owners are behind.
        """
        return f"dy:{self.slot}:{day.isoformat()}"

    def owner_days(self, cell: int, day: date, bucket: int) -> str:
        """HASH pseudonym -> packed sums, one of 256 buckets of a cell and day."""
        return f"od:{self.slot}:{cell}:{day.isoformat()}:{bucket:02x}"

    def counters(self, cell: int, day: date) -> str:
        """HASH of volume counters of a cell and day."""
        return f"ct:{self.slot}:{cell}:{day.isoformat()}"
