"""Repeated records: batches of records with known templates, made evidence a prompt at a time."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from guardwave.control_plane.ingest.contract import LONGEST_KEPT
from guardwave.control_plane.ingest.evidence.delta import VerifiedAssignment
from guardwave.control_plane.ingest.evidence.template_effects import TemplateEffects
from guardwave.control_plane.ingest.fast_path import MINUTE_NS
from guardwave.control_plane.ingest.model.identity import prompt_digest
from guardwave.control_plane.ingest.model.record_templates import RepeatedRecords, TemplatedRecord
from guardwave.control_plane.ingest.model.rejections import ItemRejected
from guardwave.control_plane.stores.evidence.delta.dedupe_keys import DEDUPE_BUCKET_S
from guardwave.control_plane.stores.evidence.delta.prompt_events import PromptEvents, minute_bits
from guardwave.control_plane.stores.evidence.delta.request import OwnerActivity

VerifyIds = Callable[[tuple[str, ...], str, str | None], Sequence[VerifiedAssignment]]


# Each set of strata has a table of effects; a sender can make any number of them by its versions.
_MOST_STRATA = 1024


class RepeatedRecordsDelta(NamedTuple):
    """Events of each prompt, with the activity of its owner.

    `remaining` are the records that have to be built one by one.
    """

    prompts: list[tuple[PromptEvents, Sequence[OwnerActivity]]]
    remaining: list[TemplatedRecord]


class _Owner(NamedTuple):
    pseudonym: str
    bucket: int
    effects: TemplateEffects


class _Owners(dict[tuple[tuple[str, ...], str], _Owner | None]):
    """Owners by their assignment ids and version.

    Long ids, and ids that prove no owner, are not kept: a sender can write any number of them.
    """

    def __init__(
        self, find: Callable[[tuple[str, ...], str], _Owner | None], remembered: int
    ) -> None:
        super().__init__()
        self._find = find
        self._remembered = remembered

    def __missing__(self, key: tuple[tuple[str, ...], str]) -> _Owner | None:
        owner = self._find(*key)
        if owner is not None and sum(map(len, key[0])) <= LONGEST_KEPT:
            if len(self) >= self._remembered:
                self.clear()
            self[key] = owner
        return owner


class RepeatedRecordsBuilder:
    """Builds evidence of record batches; the effects of templates and ids are computed once.

    `verify_ids` verifies assignment ids. `owner_activity` makes the activity of a pseudonym, a
    version, and a day number with whether a prompt starts or ends on it. `bucket_of` finds an
    owner's bucket.
    """

    def __init__(
        self,
        environment: str,
        *,
        verify_ids: VerifyIds,
        owner_activity: Callable[[str, str, tuple[int, bool]], OwnerActivity],
        bucket_of: Callable[[str], int],
        remembered: int,
    ) -> None:
        self._environment = environment
        self._verify_ids = verify_ids
        self._owner_activity = owner_activity
        self._bucket_of = bucket_of
        self._owners = _Owners(self._find_owner, remembered)
        self._effects: dict[tuple[tuple[str, int], ...], TemplateEffects] = {}

    def build(self, repeated: RepeatedRecords) -> RepeatedRecordsDelta:
        """Return the same evidence as the records would give one by one."""
        version, resource_ids = repeated.origin.service_version, repeated.origin.assignment_ids
        owners, owner_activity = self._owners, self._owner_activity
        prompts: list[tuple[PromptEvents, Sequence[OwnerActivity]]] = []
        remaining: list[TemplatedRecord] = []
        minute = bits_of_minute = 0
        for batch in repeated.record_batches:
            prompt_id, record_ids, templates, times_ns, numbers = batch
            owner = owners[record_ids or resource_ids, version]
            if owner is None:
                remaining += [repeated.expand(batch, at) for at in range(len(templates))]
                continue
            pseudonym, bucket, effects = owner
            shared, partial_digests, values_of, singles = effects.of_batch(tuple(templates))
            if shared:
                suffix, prompt_part = prompt_digest(pseudonym, prompt_id)
                values, active_on = values_of(times_ns, numbers)
                if times_ns[0] // MINUTE_NS != minute:
                    minute = times_ns[0] // MINUTE_NS
                    bits_of_minute = minute_bits(minute * DEDUPE_BUCKET_S)
                # as `event_identity` has it
                tokens = partial_digests.tokens(prompt_part ^ bits_of_minute)
                # as `PromptEvents(...)`, without a call in Python
                events = tuple.__new__(
                    PromptEvents, (pseudonym, suffix, bucket, shared, tokens, values)
                )
                prompts.append((events, (owner_activity(pseudonym, version, active_on),)))
            if singles:
                remaining += [repeated.expand(batch, at) for at in singles]
        return RepeatedRecordsDelta(prompts, remaining)

    def _find_owner(self, ids: tuple[str, ...], version: str) -> _Owner | None:
        """Return the owner that the ids prove; None when one of them does not verify."""
        try:
            assignments = self._verify_ids(ids, version, None)
        except ItemRejected:
            return None
        if not assignments:
            return None
        pseudonym = assignments[0].assignment.pseudonym
        strata = tuple(
            (verified.stratum.name, verified.assignment.generation) for verified in assignments
        )
        effects = self._effects.get(strata)
        if effects is None:
            effects = TemplateEffects(self._environment, assignments)
            if len(self._effects) >= _MOST_STRATA:
                self._effects.clear()
            self._effects[strata] = effects
        return _Owner(pseudonym, self._bucket_of(pseudonym), effects)
