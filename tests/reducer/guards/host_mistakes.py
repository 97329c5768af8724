"""A table of mistakes in a host's code: what is called, with what, and what the error says."""

import pytest

from reducer.guards import (
    duplicate_call_id,
    identical_call,
    pipeline,
    side_effect,
)
from reducer.guards.calls import ToolCall
from reducer.guards.duplicate_call_id import HistoryCall, HistorySeeded
from reducer.guards.modes import parse_mode
from reducer.guards.pipeline import (
    Answered,
    BatchProposed,
    BatchSettled,
    Limits,
    Pipeline,
    PromptStarted,
    Proposal,
    TurnStarting,
)
from reducer.guards.repeated_failure import Observation, Receipt, settle
from reducer.guards.side_effect import FirstUse
from reducer.vocabulary import Mode

CALL = ToolCall.of("c1", "send", {})
PROPOSAL = Proposal(CALL)
SEEN = Observation("c1", "send", terminal_status="success", execution_status="success")
SETTLED = settle(["c1"], [Receipt(1, SEEN)], is_input_reliable=True)


def settled_by(admitted, receipts):
    return settle(admitted, receipts, is_input_reliable=True)


def limited(limits):
    return Pipeline.start({}, limits=limits)


def laddered_alone(ladder):
    return side_effect.SideEffectDuplicate.start(Mode.WARN, ladder=ladder)


def restored(limits):
    return pipeline.restore(pipeline.dump(Pipeline.start({})), limits=limits)


def laddered(ladder):
    return Limits(ladder=ladder)


def layered(layers):
    return Proposal(CALL, **layers)


MISTAKES = [
    pytest.param(
        Pipeline.start,
        (None,),
        "modes is of type NoneType; pass a mapping from guard to Mode (reducer.vocabulary), "
        "{} for every guard off",
        id="no modes",
    ),
    pytest.param(
        PromptStarted,
        ([Mode.WARN],),
        "modes is of type list; pass a mapping from guard to Mode (reducer.vocabulary), "
        "{} for every guard off",
        id="a list of modes",
    ),
    pytest.param(
        PromptStarted,
        ({"identical_call": "enforce"},),
        "the mode of identical_call is of type str; pass a Mode (reducer.vocabulary); "
        "for a word, parse_mode(word).mode (reducer.guards.modes)",
        id="a word for a mode",
    ),
    pytest.param(
        Pipeline.start,
        ({"side_effect_duplicate": parse_mode("warn")},),
        "the mode of side_effect_duplicate is of type reducer.guards.modes.ParsedMode; "
        "pass a Mode (reducer.vocabulary); for a word, parse_mode(word).mode "
        "(reducer.guards.modes)",
        id="a mode with its diagnostic",
    ),
    pytest.param(
        PromptStarted,
        (
            {},
            "cron",
        ),
        "route is of type str; pass a Route (reducer.vocabulary); "
        "for a word, what Route.parse gives",
        id="a word for a route",
    ),
    pytest.param(
        limited,
        ({"total_calls": 7},),
        "limits is of type dict; pass a Limits (reducer.guards.pipeline)",
        id="limits as a dict",
    ),
    pytest.param(
        restored,
        (7,),
        "limits is of type int; pass a Limits (reducer.guards.pipeline)",
        id="a number for limits in a restored session",
    ),
    pytest.param(
        laddered,
        ("block",),
        "ladder is of type str; pass Ladder.parse(setting) (reducer.guards.side_effect)",
        id="a word for a ladder",
    ),
    pytest.param(
        pipeline.reduce,
        (
            {},
            TurnStarting(),
        ),
        "state is of type dict; pass what Pipeline.start (reducer.guards.pipeline) or a step gave",
        id="a dict for the pipeline",
    ),
    pytest.param(
        pipeline.reduce,
        (
            Pipeline.start({}),
            identical_call.BatchSettled(),
        ),
        "event is of type reducer.guards.identical_call.events.BatchSettled; "
        "pass one of reducer.guards.pipeline.Event",
        id="an event of one guard alone",
    ),
    pytest.param(
        BatchProposed,
        (
            (PROPOSAL,),
            "r1",
            1,
        ),
        "responses[0] is of type reducer.guards.pipeline.events.Proposal; pass a tuple of "
        "Proposal (reducer.guards.pipeline) for each model response, "
        "as in BatchProposed(((Proposal(call),),), ...)",
        id="a proposal for a response",
    ),
    pytest.param(
        BatchProposed,
        (
            ((PROPOSAL, CALL),),
            "r1",
            1,
        ),
        "responses[0][1] is of type reducer.guards.calls.ToolCall; pass a tuple of "
        "Proposal (reducer.guards.pipeline) for each model response, "
        "as in BatchProposed(((Proposal(call),),), ...)",
        id="a call for a proposal",
    ),
    pytest.param(
        BatchProposed,
        (
            (CALL,),
            "r1",
            1,
        ),
        "responses[0] is of type reducer.guards.calls.ToolCall; pass a tuple of "
        "Proposal (reducer.guards.pipeline) for each model response, "
        "as in BatchProposed(((Proposal(call),),), ...)",
        id="a call for a response",
    ),
    pytest.param(
        BatchProposed,
        (
            iter([(PROPOSAL,)]),
            "r1",
            1,
        ),
        "responses is of type list_iterator; pass a tuple of Proposal (reducer.guards.pipeline) "
        "for each model response, as in BatchProposed(((Proposal(call),),), ...)",
        id="responses that can be read only once",
    ),
    pytest.param(
        Proposal,
        ("c1",),
        "call is of type str; pass a ToolCall (reducer.guards.calls)",
        id="an id for a call",
    ),
    pytest.param(
        Proposal,
        (ToolCall("c1", None, None),),  # type: ignore[arg-type]  # the mistake
        "tool is of type NoneType; pass its resolved name as a text",
        id="a call without a tool",
    ),
    pytest.param(
        Proposal,
        (
            CALL,
            True,
        ),
        "declaration is of type bool; pass a ToolDeclaration (reducer.guards.side_effect)",
        id="a flag for a declaration",
    ),
    pytest.param(
        layered,
        ({"xid": 7},),
        "xid is of type int; pass a text, or None for none",
        id="an identity of no text",
    ),
    pytest.param(
        layered,
        ({"xid": "x", "first_use": "c0"},),
        "first_use is of type str; pass a FirstUse (reducer.guards.side_effect), or None for none",
        id="an id for a first use",
    ),
    pytest.param(
        layered,
        ({"first_use": FirstUse("c0", "r0", 1)},),
        "first_use is given without the xid it was read under; pass both",
        id="a use without its identity",
    ),
    pytest.param(
        layered,
        ({"candidate": FirstUse("c0", "r0", 1)},),
        "candidate is of type reducer.guards.side_effect.repeat.FirstUse; "
        "pass a Candidate (reducer.guards.side_effect), or None for none",
        id="a use for a candidate",
    ),
    pytest.param(
        settled_by,
        (
            ["c1"],
            [SEEN],
        ),
        "one of receipts is of type reducer.guards.repeated_failure.outcome.Observation; pass "
        "a Receipt(ordinal, observation) (reducer.guards.repeated_failure) for each call",
        id="an observation for its receipt",
    ),
    pytest.param(
        settled_by,
        (
            ["c1"],
            None,
        ),
        "receipts is of type NoneType; pass "
        "a Receipt(ordinal, observation) (reducer.guards.repeated_failure) for each call",
        id="no receipts",
    ),
    pytest.param(
        settled_by,
        (
            None,
            [],
        ),
        "admitted is of type NoneType; pass the collection of admitted call ids",
        id="no ids",
    ),
    pytest.param(
        settled_by,
        (
            [CALL],
            [],
        ),
        "one of admitted is of type reducer.guards.calls.ToolCall; "
        "pass the ids as texts (CallFate.key)",
        id="a call for its id",
    ),
    pytest.param(
        BatchSettled,
        (
            [SEEN],
            1,
        ),
        "batch is of type list; pass what settle (reducer.guards.repeated_failure) gives",
        id="observations for a batch",
    ),
    pytest.param(
        BatchSettled,
        (
            SETTLED,
            1,
            ["digest"],
        ),
        "evidence is of type list; pass a mapping from a call's key to a digest",
        id="evidence of no call",
    ),
    pytest.param(
        Answered,
        (
            7,
            True,
            1,
        ),
        "key is of type int; pass the CallFate.key of the call that waits",
        id="an answer to a number",
    ),
    pytest.param(
        Answered,
        (
            "c1",
            "yes",
            1,
        ),
        "is_approved is of type str; pass True or False",
        id="a word for an approval",
    ),
    pytest.param(
        HistorySeeded,
        ((CALL,),),
        "entries[0] is of type reducer.guards.calls.ToolCall; "
        "pass a tuple of HistoryCall (reducer.guards.duplicate_call_id)",
        id="a call for an entry of the history",
    ),
    pytest.param(
        HistoryCall,
        ("c1",),
        "call is of type str; pass a ToolCall (reducer.guards.calls)",
        id="an id for a call of the history",
    ),
    pytest.param(
        duplicate_call_id.BatchProposed,
        ((CALL,),),
        "responses[0] is of type reducer.guards.calls.ToolCall; pass a tuple of ToolCall "
        "(reducer.guards.calls) for each model response, as in BatchProposed(((call,),))",
        id="duplicate call id: a call for a response",
    ),
    pytest.param(
        identical_call.CallsProposed,
        (CALL,),
        "calls is of type reducer.guards.calls.ToolCall; "
        "pass a tuple of ToolCall (reducer.guards.calls)",
        id="identical call: a call for the tuple of it",
    ),
    pytest.param(
        laddered_alone,
        ("block",),
        "ladder is of type str; pass Ladder.parse(setting) (reducer.guards.side_effect)",
        id="side effect: a word for a ladder",
    ),
    pytest.param(
        side_effect.Settled,
        (
            "c1",
            "r1",
            "success",
            1,
        ),
        "execution_status is of type str; pass an ExecutionStatus (reducer.vocabulary), "
        "or None for one not known",
        id="side effect: a word for a status",
    ),
    pytest.param(
        side_effect.RequestEnded,
        (None,),
        "request is of type NoneType; pass the host's id of the request as a text",
        id="side effect: the end of no request",
    ),
    pytest.param(
        side_effect.ThreadEnded,
        (None,),
        "thread is of type NoneType; pass the host's id of the thread as a text",
        id="side effect: the end of no thread",
    ),
]
