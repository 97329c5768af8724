import pytest

from guardwave.control_plane.stores.evidence.delta.dedupe_keys import DedupeKey
from guardwave.control_plane.stores.evidence.delta.prompt_events import (
    EndDelta,
    PromptDelta,
    PromptKey,
    StartDelta,
)
from guardwave.control_plane.stores.evidence.delta.request import EvidenceBatch, PromptEvent
from guardwave.control_plane.stores.evidence.delta.strata import Stratum
from guardwave.reducer.rollout.pseudonym import pack
from guardwave.reducer.vocabulary import Cohort, Mode, Outcome
from tests.control_plane.http.conftest import ENVIRONMENT, GUARD, PLACE, REASON, assert_problem

OWNERS = f"{PLACE}/owners"
KNOWN = {"ownership": "known", "trusted": True}


def test_facts_of_an_owner_are_stated_and_read_back(operator, rollout):
    stated = operator.put(f"{OWNERS}/team-7@example", KNOWN)
    assert stated.get_json()["owners_changed"] == 1
    found = operator.get(f"{OWNERS}/team-7@example").get_json()
    assert (found["facts"]["ownership"], found["facts"]["trusted"]) == ("known", True)


def test_stating_the_same_facts_again_changes_nothing(operator, rollout):
    operator.put(f"{OWNERS}/alice", KNOWN)
    entries = operator.get("/api/v1/audit-events").get_json()["items"]
    assert operator.put(f"{OWNERS}/alice", KNOWN).get_json()["owners_changed"] == 0
    assert operator.get("/api/v1/audit-events").get_json()["items"] == entries


def test_an_owner_nobody_spoke_of_is_explained(viewer, rollout):
    found = viewer.get(f"{OWNERS}/stranger").get_json()
    assert found["facts"] is None
    (guard,) = found["guards"]
    assert (guard["mode"], guard["cohort"]) == ("shadow", "ineligible")
    assert guard["reasons"][0]["code"] == "unknown_owner"
    assert guard["reasons"][0]["sentence"] in guard["sentence"]


def test_no_answer_and_no_audit_entry_holds_an_owner_id(operator, rollout):
    operator.put(f"{OWNERS}/alice@example", KNOWN)
    texts = [
        operator.get(f"{OWNERS}/alice@example").text,
        operator.get("/api/v1/audit-events").text,
        operator.get(PLACE).text,
    ]
    assert not any("alice" in text for text in texts)


def test_a_thousand_owners_are_stated_at_once(operator, rollout):
    owners = [{"owner": f"owner {at}/ü", **KNOWN} for at in range(1000)]
    assert operator.post(OWNERS, {"owners": owners}).get_json()["owners_changed"] == 1000


@pytest.mark.parametrize(
    ("owners", "pointer"),
    [
        pytest.param([], "/owners", id="none"),
        pytest.param([{"owner": str(at), **KNOWN} for at in range(1001)], "/owners", id="1,001"),
        pytest.param([{"owner": "secret-name"}], "/owners/0/ownership", id="no facts"),
        pytest.param([{"owner": 7, **KNOWN}], "/owners/0/owner", id="a number"),
        pytest.param([{"owner": "", **KNOWN}], "/owners/0/owner", id="an empty id"),
        pytest.param([{"owner": "ü" * 200, **KNOWN}], "/owners/0/owner", id="400 bytes"),
        pytest.param([{"owner": "secret\nname", **KNOWN}], "/owners/0/owner", id="a line break"),
        pytest.param(
            [{"owner": "a", "ownership": "secret-name", "trusted": True}],
            "/owners/0/ownership",
            id="an id in the wrong place",
        ),
        pytest.param([{"owner": "a", "secret-name": 1, **KNOWN}], "/owners/0", id="a wrong member"),
        pytest.param({"secret-name": KNOWN}, "/owners", id="an object"),
    ],
)
def test_a_bad_list_of_owners_is_refused_whole_and_repeats_no_id(
    operator, rollout, owners, pointer
):
    good = [{"owner": "first", **KNOWN}]
    response = operator.post(OWNERS, {"owners": owners})
    document = assert_problem(response, 400, "invalid-field")
    assert document["errors"][0]["pointer"] == pointer
    assert "secret" not in response.text
    assert operator.post(OWNERS, {"owners": good}).get_json()["owners_changed"] == 1


def test_an_owner_named_twice_is_refused_by_its_place(operator, rollout):
    owners = [{"owner": "secret-name", **KNOWN}] * 2
    response = operator.post(OWNERS, {"owners": owners})
    document = assert_problem(response, 422, "rule-violated")
    assert "owners/1" in document["detail"]
    assert "secret" not in response.text


@pytest.mark.parametrize(
    "body",
    [
        pytest.param({"ownership": "mine", "trusted": True}, id="an unknown word"),
        pytest.param({"ownership": "known", "trusted": "yes"}, id="a word for a boolean"),
        pytest.param({"ownership": "known", "trusted": 1}, id="a number for a boolean"),
        pytest.param({"ownership": "known"}, id="half the facts"),
        pytest.param({**KNOWN, "note": "x"}, id="an unknown member"),
        pytest.param({**KNOWN, "reason": "short"}, id="a short reason"),
    ],
)
def test_bad_facts_are_refused(operator, rollout, body):
    assert_problem(operator.put(f"{OWNERS}/alice", body), 400, "invalid-field")


@pytest.mark.parametrize("owner", ["a%20b", "a%00b", "%C3%BC", "x" * 257])
def test_an_owner_id_with_other_characters_is_no_path(operator, rollout, owner):
    response = operator.put(f"{OWNERS}/{owner}", KNOWN)
    document = assert_problem(response, 400, "invalid-field")
    assert document["errors"][0]["pointer"] == "/owner"
    assert "x" * 20 not in response.text


def test_a_stale_if_match_on_facts_is_refused(operator, rollout):
    response = operator.put(f"{OWNERS}/alice", KNOWN, If_Match='"0123456789"')
    assert_problem(response, 412, "precondition-failed")


def test_an_owners_evidence_is_summed_by_guard_and_wave(context, wall, operator, rollout):
    pseudonym = operator.get(f"{OWNERS}/alice").get_json()["pseudonym"]
    stratum = Stratum(GUARD, "1.0", 1, Cohort.EVERYONE, Mode.SHADOW)
    second = int(wall.now.timestamp())
    day = wall.now.date()
    events = []
    for at, outcome in enumerate([Outcome.COMPLETED, Outcome.COMPLETED, Outcome.CANCELLED]):
        prompt = PromptKey(pseudonym, f"{at:016x}", pack(pseudonym)[0])
        ended = EndDelta(
            outcome=outcome,
            tokens=100,
            turns=2,
            duration_bucket=5,
            transitions=0,
            calls_after_would_stop=0,
            hour=9,
        )
        halves: tuple[PromptDelta, PromptDelta] = (StartDelta(hour=9), ended)
        for half, delta in enumerate(halves):
            dedupe_key = DedupeKey(digest=1 + 2 * at + half, second=second)
            events.append(PromptEvent(dedupe_key, prompt, day, (stratum,), True, delta))
    context.evidence.write(ENVIRONMENT, EvidenceBatch(tuple(events)))
    (evidence,) = operator.get(f"{OWNERS}/alice").get_json()["evidence"]
    assert (evidence["guard"], evidence["wave"]) == (GUARD, 1)
    counted = {name: evidence[name] for name in ("started", "completed", "cancelled", "tokens")}
    assert counted == {"started": 3, "completed": 2, "cancelled": 1, "tokens": 300}


def test_facts_with_an_unknown_environment_are_refused(admin):
    response = admin.put("/api/v1/environments/absent/owners/alice", {**KNOWN, "reason": REASON})
    assert_problem(response, 404, "not-found")
