"""Argument errors: a table of wrong calls by a host's code, with the text of the error."""

import pytest

from guardwave.reducer import pipeline
from guardwave.reducer.guards import duplicate_call_id, identical_call, side_effect
from guardwave.reducer.guards.calls import ToolCall
from guardwave.reducer.guards.duplicate_call_id import HistoryCall, HistorySeeded
from guardwave.reducer.guards.modes import parse_mode
from guardwave.reducer.guards.repeated_failure import Observation, Receipt, settle
from guardwave.reducer.guards.side_effect import FirstUse
from guardwave.reducer.pipeline import (
    Answered,
    BatchProposed,
    BatchSettled,
    Limits,
    Pipeline,
    PromptStarted,
    Proposal,
    TurnStarting,
)
from guardwave.reducer.vocabulary import Mode

CALL = ToolCall.of("c1", "send", {})
PROPOSAL = Proposal(CALL)
SEEN = Observation("c1", "send", terminal_status="success", execution_status="success")
SETTLED = settle(["c1"], [Receipt(1, SEEN)], is_input_reliable=True)


def settle_calls(admitted, receipts):
    return settle(admitted, receipts, is_input_reliable=True)


def start_with_limits(limits):
    return Pipeline.start({}, limits=limits)


def start_with_ladder(ladder):
    return side_effect.SideEffectDuplicate.start(Mode.WARN, ladder=ladder)


def restore_with_limits(limits):
    return pipeline.restore(pipeline.dump(Pipeline.start({})), limits=limits)


def limits_with_ladder(ladder):
    return Limits(ladder=ladder)


def propose_with(layers):
    return Proposal(CALL, **layers)


ARGUMENT_ERRORS = [
    pytest.param(
        Pipeline.start,
        (None,),
        "modes is of type NoneType; pass a mapping from guard to Mode (guardwave.guards), "
        "{} for every guard off",
        id="no modes",
    ),
    pytest.param(
        PromptStarted,
        ([Mode.WARN],),
        "modes is of type list; pass a mapping from guard to Mode (guardwave.guards), "
        "{} for every guard off",
        id="a list of modes",
    ),
    pytest.param(
        PromptStarted,
        ({"identical_call": "enforce"},),
        "the mode of identical_call is of type str; pass a Mode (guardwave.guards); "
        "for a word, parse_mode(word).mode (guardwave.guards)",
        id="a word for a mode",
    ),
    pytest.param(
        Pipeline.start,
        ({"side_effect_duplicate": parse_mode("warn")},),
        "the mode of side_effect_duplicate is of type guardwave.reducer.guards.modes.ParsedMode; "
        "pass a Mode (guardwave.guards); for a word, parse_mode(word).mode "
        "(guardwave.guards)",
        id="a mode with its diagnostic",
    ),
    pytest.param(
        PromptStarted,
        (
            {},
            "cron",
        ),
        "route is of type str; pass a Route (guardwave.guards); for a word, the result of "
        "Route.parse",
        id="a word for a route",
    ),
    pytest.param(
        start_with_limits,
        ({"total_calls": 7},),
        "limits is of type dict; pass a Limits (guardwave.guards.pipeline)",
        id="limits as a dict",
    ),
    pytest.param(
        restore_with_limits,
        (7,),
        "limits is of type int; pass a Limits (guardwave.guards.pipeline)",
        id="a number for limits in a restored session",
    ),
    pytest.param(
        limits_with_ladder,
        ("block",),
        "ladder is of type str; pass Ladder.parse(setting) (guardwave.guards.side_effect)",
        id="a word for a ladder",
    ),
    pytest.param(
        pipeline.reduce,
        (
            {},
            TurnStarting(),
        ),
        "state is of type dict; pass the result of Pipeline.start (guardwave.guards.pipeline) "
        "or of a step",
        id="a dict for the pipeline",
    ),
    pytest.param(
        pipeline.reduce,
        (
            Pipeline.start({}),
            identical_call.BatchSettled(),
        ),
        "event is of type guardwave.reducer.guards.identical_call.events.BatchSettled; "
        "pass one of guardwave.guards.pipeline.Event",
        id="an event of one guard alone",
    ),
    pytest.param(
        BatchProposed,
        (
            (PROPOSAL,),
            "r1",
            1,
        ),
        "responses[0] is of type guardwave.reducer.pipeline.events.Proposal; pass a tuple of "
        "Proposal (guardwave.guards.pipeline) for each model response, "
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
        "responses[0][1] is of type guardwave.reducer.guards.calls.ToolCall; pass a tuple of "
        "Proposal (guardwave.guards.pipeline) for each model response, "
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
        "responses[0] is of type guardwave.reducer.guards.calls.ToolCall; pass a tuple of "
        "Proposal (guardwave.guards.pipeline) for each model response, "
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
        "responses is of type list_iterator; pass a tuple of Proposal (guardwave.guards.pipeline) "
        "for each model response, as in BatchProposed(((Proposal(call),),), ...)",
        id="responses that can be read only once",
    ),
    pytest.param(
        Proposal,
        ("c1",),
        "call is of type str; pass a ToolCall (guardwave.guards)",
        id="an id for a call",
    ),
    pytest.param(
        Proposal,
        (ToolCall("c1", None, None),),  # type: ignore[arg-type]  # the error
        "tool is of type NoneType; pass its resolved name as a text",
        id="a call without a tool",
    ),
    pytest.param(
        Proposal,
        (
            CALL,
            True,
        ),
        "declaration is of type bool; pass a ToolDeclaration (guardwave.guards.side_effect)",
        id="a flag for a declaration",
    ),
    pytest.param(
        propose_with,
        ({"xid": 7},),
        "xid is of type int; pass a text, or None for none",
        id="an identity of no text",
    ),
    pytest.param(
        propose_with,
        ({"xid": "x", "first_use": "c0"},),
        "first_use is of type str; pass a FirstUse (guardwave.guards.side_effect), "
        "or None for none",
        id="an id for a first use",
    ),
    pytest.param(
        propose_with,
        ({"first_use": FirstUse("c0", "r0", 1)},),
        "first_use is given without the xid it was read under; pass both",
        id="a use without its identity",
    ),
    pytest.param(
        propose_with,
        ({"candidate": FirstUse("c0", "r0", 1)},),
        "candidate is of type guardwave.reducer.guards.side_effect.repeat.FirstUse; "
        "pass a Candidate (guardwave.guards.side_effect), or None for none",
        id="a use for a candidate",
    ),
    pytest.param(
        settle_calls,
        (
            ["c1"],
            [SEEN],
        ),
        "one of receipts is of type "
        "guardwave.reducer.guards.repeated_failure.outcome.Observation; pass "
        "a Receipt(ordinal, observation) (guardwave.guards.repeated_failure) for each call",
        id="an observation for its receipt",
    ),
    pytest.param(
        settle_calls,
        (
            ["c1"],
            None,
        ),
        "receipts is of type NoneType; pass "
        "a Receipt(ordinal, observation) (guardwave.guards.repeated_failure) for each call",
        id="no receipts",
    ),
    pytest.param(
        settle_calls,
        (
            None,
            [],
        ),
        "admitted is of type NoneType; pass the collection of admitted call ids",
        id="no ids",
    ),
    pytest.param(
        settle_calls,
        (
            [CALL],
            [],
        ),
        "one of admitted is of type guardwave.reducer.guards.calls.ToolCall; "
        "pass the ids as texts, such as CallDisposition.key (guardwave.guards.pipeline)",
        id="a call for its id",
    ),
    pytest.param(
        BatchSettled,
        (
            [SEEN],
            1,
        ),
        "batch is of type list; pass the result of settle (guardwave.guards.repeated_failure)",
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
        "key is of type int; pass the CallDisposition.key (guardwave.guards.pipeline) "
        "of the waiting call",
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
        "entries[0] is of type guardwave.reducer.guards.calls.ToolCall; "
        "pass a tuple of HistoryCall (guardwave.guards.duplicate_call_id)",
        id="a call for an entry of the history",
    ),
    pytest.param(
        HistoryCall,
        ("c1",),
        "call is of type str; pass a ToolCall (guardwave.guards)",
        id="an id for a call of the history",
    ),
    pytest.param(
        duplicate_call_id.BatchProposed,
        ((CALL,),),
        "responses[0] is of type guardwave.reducer.guards.calls.ToolCall; pass a tuple of ToolCall "
        "(guardwave.guards) for each model response, as in BatchProposed(((call,),))",
        id="duplicate call id: a call for a response",
    ),
    pytest.param(
        identical_call.CallsProposed,
        (CALL,),
        "calls is of type guardwave.reducer.guards.calls.ToolCall; "
        "pass a tuple of ToolCall (guardwave.guards)",
        id="identical call: a call for the tuple of it",
    ),
    pytest.param(
        start_with_ladder,
        ("block",),
        "ladder is of type str; pass Ladder.parse(setting) (guardwave.guards.side_effect)",
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
        "execution_status is of type str; pass an ExecutionStatus (guardwave.guards), "
        "or None for an unknown one",
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
