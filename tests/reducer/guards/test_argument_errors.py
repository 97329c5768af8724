"""Argument errors: a ValueError with the field, the type found and a remedy."""

import pkgutil
import re
from types import SimpleNamespace

import pytest

from guardwave.reducer import pipeline
from guardwave.reducer.guards import (
    duplicate_call_id,
    identical_call,
    repeated_failure,
    side_effect,
)
from guardwave.reducer.guards.duplicate_call_id import DuplicateCallId
from guardwave.reducer.guards.identical_call import IdenticalCall
from guardwave.reducer.guards.repeated_failure import RepeatedFailure
from guardwave.reducer.guards.side_effect import SideEffectDuplicate
from guardwave.reducer.pipeline import (
    GUARDS,
    Answered,
    BatchProposed,
    BatchSettled,
    Pipeline,
    PromptStarted,
    Proposal,
)
from guardwave.reducer.vocabulary import Mode, Route
from tests.support.guards.argument_errors import ARGUMENT_ERRORS, PROPOSAL, SETTLED
from tests.support.guards.pipelines import every

SECRET = SimpleNamespace(text="secret")
# "Mode (guardwave.guards)", "parse_mode(word).mode (guardwave.guards)", or a path alone.
NAMED = re.compile(r"(?:(\w+)(?:\.\w+)?(?:\([^)]*\))?(?:\.\w+)? \()?(guardwave\.guards(?:\.\w+)*)")


def remedy_paths(words):
    """Yield the places that a remedy sends its reader to."""
    for name, path in NAMED.findall(words.split("; ", 1)[1]):
        yield f"{path}.{name}" if name else path


@pytest.mark.parametrize(("call", "arguments", "words"), ARGUMENT_ERRORS)
def test_an_argument_error_names_the_field_the_type_and_the_remedy(call, arguments, words):
    with pytest.raises(ValueError, match=f"^{re.escape(words)}$"):
        call(*arguments)


@pytest.mark.parametrize(("call", "arguments", "words"), ARGUMENT_ERRORS)
def test_a_remedy_names_only_places_that_exist(call, arguments, words):
    with pytest.raises(ValueError, match=re.escape(words)) as refused:
        call(*arguments)
    for path in remedy_paths(str(refused.value)):
        assert pkgutil.resolve_name(path) is not None


def test_the_places_that_a_remedy_names_are_found_in_it():
    words = (
        "x is of type reducer.y; pass a Mode (guardwave.guards); parse_mode(word).mode "
        "(guardwave.guards) or one of guardwave.guards.pipeline.Event"
    )
    assert list(remedy_paths(words)) == [
        "guardwave.guards.Mode",
        "guardwave.guards.parse_mode",
        "guardwave.guards.pipeline.Event",
    ]


@pytest.mark.parametrize("mode", [Mode.OFF, Mode.ENFORCE])
@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda now: BatchProposed(((PROPOSAL,),), "r1", now), id="proposed"),
        pytest.param(lambda now: BatchSettled(SETTLED, now), id="settled"),
        pytest.param(lambda now: Answered("c1", True, now), id="answered"),
    ],
)
def test_the_time_is_whole_milliseconds_whichever_guards_are_on(mode, make):
    state = Pipeline.start(every(mode))
    assert pipeline.reduce(state, make(1_700_000_000_000)).stop is None
    words = "^now_ms is of type float; pass whole milliseconds since 1970-01-01 UTC"
    with pytest.raises(ValueError, match=words):
        pipeline.reduce(state, make(1_700_000_000.5))


@pytest.mark.parametrize(
    ("guard", "start", "reduce"),
    [
        pytest.param(
            duplicate_call_id.GUARD, DuplicateCallId.start, duplicate_call_id.reduce, id="call id"
        ),
        pytest.param(
            identical_call.GUARD, IdenticalCall.start, identical_call.reduce, id="identical"
        ),
        pytest.param(
            side_effect.GUARD, SideEffectDuplicate.start, side_effect.reduce, id="side effect"
        ),
        pytest.param(
            repeated_failure.GUARD, RepeatedFailure.start, repeated_failure.reduce, id="failure"
        ),
    ],
)
def test_each_guard_alone_names_itself(guard, start, reduce):
    with pytest.raises(ValueError, match=f"^the mode of {guard} is of type str; pass a Mode"):
        start("enforce")
    with pytest.raises(ValueError, match=r"^route is of type str; pass a Route"):
        start(Mode.ENFORCE, route="cron")
    with pytest.raises(ValueError, match=r"^event is of type str; pass "):
        reduce(start(Mode.ENFORCE), "go")
    of_start = f"{start.__self__.__name__}.start"
    with pytest.raises(ValueError, match=f"^state is of type dict; pass the result of {of_start} "):
        reduce({}, "go")


@pytest.mark.parametrize("guard", GUARDS)
@pytest.mark.parametrize(
    "start", [pytest.param(Pipeline.start, id="session"), pytest.param(PromptStarted, id="prompt")]
)
def test_the_pipeline_names_the_guard_whose_mode_is_none(guard, start):
    with pytest.raises(ValueError, match=f"^the mode of {guard} is of type NoneType"):
        start({guard: None})


@pytest.mark.parametrize(
    ("state", "reduce", "event"),
    [
        pytest.param(
            DuplicateCallId.start(Mode.WARN),
            duplicate_call_id.reduce,
            duplicate_call_id.PromptStarted,
            id="call id",
        ),
        pytest.param(
            IdenticalCall.start(Mode.WARN),
            identical_call.reduce,
            identical_call.RunStarted,
            id="identical",
        ),
        pytest.param(
            SideEffectDuplicate.start(Mode.WARN),
            side_effect.reduce,
            side_effect.PromptStarted,
            id="side effect",
        ),
    ],
)
def test_a_prompt_of_one_guard_alone_takes_no_word_for_a_mode(state, reduce, event):
    with pytest.raises(ValueError, match=r"^the mode of \w+ is of type str; pass a Mode"):
        reduce(state, event("enforce"))
    with pytest.raises(ValueError, match=r"^route is of type str; pass a Route"):
        reduce(state, event(Mode.ENFORCE, "cron"))
    assert reduce(state, event(Mode.ENFORCE, Route.INTERACTIVE_FOREGROUND)).state.mode == "enforce"


@pytest.mark.parametrize(
    ("call", "arguments"),
    [
        pytest.param(Pipeline.start, (SECRET,), id="modes"),
        pytest.param(Proposal, (SECRET,), id="call"),
        pytest.param(BatchProposed, (((SECRET,),), "r1", 1), id="proposal"),
        pytest.param(BatchProposed, (((PROPOSAL,),), SECRET, 1), id="request"),
        pytest.param(BatchProposed, (((PROPOSAL,),), "r1", SECRET), id="time"),
        pytest.param(pipeline.reduce, (Pipeline.start({}), SECRET), id="event"),
    ],
)
def test_an_argument_error_never_shows_the_value(call, arguments):
    with pytest.raises(ValueError, match=" is of type ") as refused:
        call(*arguments)
    assert "secret" not in str(refused.value)
