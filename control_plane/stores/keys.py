"""Store keys: every key, made here and nowhere else.

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
    """A browser session, by the digest of its cookie's secret."""
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
        """LIST of jobs that the lease's holder is working on."""
        return f"jobs:{{{self.environment}}}:taken"

    @property
    def lease(self) -> str:
        """HASH of the worker that holds the environment's jobs, and its fence."""
        return f"lease:{{{self.environment}}}"

    @property
    def import_lock(self) -> str:
        """STRING: the holder of the import of evidence that is under way."""
        return f"im:{{{self.environment}}}"

    @property
    def heartbeats(self) -> str:
        """ZSET of wall-clock seconds in which intake over HTTP was up, every 20 s."""
        return f"hb:{{{self.environment}}}"

    @property
    def grpc_heartbeats(self) -> str:
        """The same of intake over gRPC, on days on which it is open."""
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
    def strata(self) -> str:
        """HASH stratum name -> small integer, `#` and the integer -> name, `#` -> the last integer.

        `#` and the name -> the number of the day on which it was used last, and its budget; a
        budget (`#vouched:` or `#volume:`, and the producer) -> how many strata it brought.
        """
        return f"cells:{self.slot}"

    @property
    def facts(self) -> str:
        """HASH pseudonym -> the facts that a person or an import stated."""
        return f"of:{self.slot}"

    @property
    def activity(self) -> str:
        """HASH pseudonym -> versions, producers and days seen in accepted records."""
        return f"ow:{self.slot}"

    @property
    def owner_changes(self) -> str:
        """ZSET pseudonym -> number of the last change of its facts or activity."""
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
        """ZSET prompt state key suffix -> second at which a suspected violation is decided."""
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
        """HASH digest of a process -> JSON: its late and future records, and gaps in its deltas."""
        return f"hi:{self.slot}"

    @property
    def treated(self) -> str:
        """HASH of records by guard, mode above shadow, and generation of their assignment ids."""
        return f"ti:{self.slot}"

    def stream(self, suffix: str) -> str:
        """STRING: the state of one stream of metric points."""
        return f"cs:{self.slot}:{suffix}"

    @property
    def days(self) -> str:
        """SET of days that hold anything."""
        return f"dys:{self.slot}"

    def day(self, day: date) -> str:
        """HASH of the day's seal and of its sums over this shard.

        Seal: `sealed_at` is when the day was sealed, `outage` the longest outage of intake in
        seconds ('' when no heartbeat shows it), `revision` how often a sum changed since.

        Prompts by events: `h0` to `h23` started in each hour (an end without a start counts as
        one), `ended` ended, `covered` have all their records, `called` called tools on hosts that
        report prompts in parts, `told:` and a version were reported by trusted producers.

        Records: `records` are those of the contract check, `conforming` met the contract,
        `unnumbered` are transitions without a sequence number.

        Metric points: `counted` are transitions counted by hosts without sequence numbers (`SHOWS`
        1 in the Lua library), `witnessed` what other counters of such hosts count (`SHOWS` 2),
        `shown:` with guard, `|` and version are starts in counters of trusted producers. The part
        that was counted across midnight is added once more under `counted_since`,
        `witnessed_since` and `shown_since:`. `smeared` are points that cover both sides of a
        midnight, `overflowed` points whose attributes an SDK left out.

        With `c` before their names `h0` to `h23`, `ended`, `records`, `conforming`, `smeared` and
        `overflowed` are the same for the evidence by counters of single owners.
        """
        return f"dy:{self.slot}:{day.isoformat()}"

    def owner_days(self, stratum: int, day: date, bucket: int) -> str:
        """HASH pseudonym -> packed sums, in one of the 256 buckets of a stratum and day."""
        return f"od:{self.slot}:{stratum}:{day.isoformat()}:{bucket:02x}"

    def counters(self, stratum: int, day: date) -> str:
        """HASH of volume counters of a stratum and day."""
        return f"ct:{self.slot}:{stratum}:{day.isoformat()}"
