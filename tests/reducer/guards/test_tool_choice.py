import copy

import pytest

from guardwave.reducer.guards.identical_call import SynthesisCause, Turn, TurnMode
from guardwave.reducer.guards.messages import BUDGET_NOTE, REPETITION_NOTE
from guardwave.reducer.guards.tool_choice import Transport, request_of

RESPONSES = {
    "model": "m",
    "input": [{"role": "user", "content": "go"}],
    "tools": [{"type": "function", "name": "fetch", "parameters": {"type": "object"}}],
}
CHAT = {
    "model": "m",
    "messages": [{"role": "system", "content": "be brief"}, {"role": "user", "content": "go"}],
    "tools": [{"type": "function", "function": {"name": "fetch"}}],
}
ANTHROPIC = {
    "model": "m",
    "system": [{"type": "text", "text": "be brief", "cache_control": {"type": "ephemeral"}}],
    "messages": [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "fetch"}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a"}]},
    ],
    "tools": [{"name": "fetch", "input_schema": {"type": "object"}}],
}
XML = {
    "model": "m",
    "tool_instructions": "write <fetch/> with this schema: {}",
    "messages": [{"role": "system", "content": "be brief"}, {"role": "user", "content": "go"}],
}
ORDINARY = Turn()
SYNTHESIS = Turn(TurnMode.SYNTHESIS_ONLY, SynthesisCause.REPETITION)
ON_BUDGET = Turn(TurnMode.SYNTHESIS_ONLY, SynthesisCause.BUDGET)
WITH_NOTE = Turn(TurnMode.NORMAL, SynthesisCause.REPETITION)

NATIVE = [
    pytest.param(Transport.OPENAI_RESPONSES, RESPONSES, "none", id="OpenAI Responses"),
    pytest.param(Transport.OPENAI_CHAT_COMPLETIONS, CHAT, "none", id="OpenAI Chat Completions"),
    pytest.param(Transport.ANTHROPIC_MESSAGES, ANTHROPIC, {"type": "none"}, id="Anthropic"),
]
ALL = [*NATIVE, pytest.param(Transport.XML_FALLBACK, XML, None, id="XML fallback")]


@pytest.mark.parametrize(("transport", "body", "none"), NATIVE)
def test_an_ordinary_request_is_the_body_with_its_tool_choice_unset(transport, body, none):
    assert request_of(transport, body, ORDINARY) == body
    assert "tool_choice" not in request_of(transport, body, ORDINARY)


@pytest.mark.parametrize(("transport", "body", "none"), NATIVE)
def test_a_synthesis_request_chooses_no_tool_and_keeps_the_definitions(transport, body, none):
    request = request_of(transport, body, SYNTHESIS)
    assert request["tool_choice"] == none
    assert request["tools"] == body["tools"]
    assert request["model"] == "m"


@pytest.mark.parametrize(("transport", "body", "none"), NATIVE)
def test_the_choice_of_the_host_holds_in_an_ordinary_turn_alone(transport, body, none):
    chosen = {**body, "tool_choice": "the host's"}
    assert request_of(transport, chosen, ORDINARY)["tool_choice"] == "the host's"
    assert request_of(transport, chosen, SYNTHESIS)["tool_choice"] == none


@pytest.mark.parametrize(("transport", "body", "none"), NATIVE)
@pytest.mark.parametrize("turn", [SYNTHESIS, ON_BUDGET])
def test_without_definitions_nothing_is_chosen(transport, body, none, turn):
    bare = {key: value for key, value in body.items() if key != "tools"}
    for given in (bare, {**bare, "tools": []}, {**bare, "tool_choice": "auto"}):
        assert "tool_choice" not in request_of(transport, given, turn)


@pytest.mark.parametrize(("transport", "body", "none"), ALL)
@pytest.mark.parametrize("turn", [ORDINARY, SYNTHESIS, ON_BUDGET, WITH_NOTE])
def test_the_body_is_left_as_it_is(transport, body, none, turn):
    before = copy.deepcopy(body)
    request_of(transport, body, turn)
    assert body == before


@pytest.mark.parametrize(("transport", "body", "none"), NATIVE)
def test_a_note_in_warn_leaves_the_tools_on(transport, body, none):
    request = request_of(transport, body, WITH_NOTE)
    assert request["tools"] == body["tools"]
    assert "tool_choice" not in request
    assert REPETITION_NOTE in str(request)


def test_the_note_of_a_responses_request_is_its_last_input_item():
    request = request_of(Transport.OPENAI_RESPONSES, RESPONSES, SYNTHESIS)
    note = {"role": "developer", "content": REPETITION_NOTE}
    assert request["input"] == [*RESPONSES["input"], note]


def test_a_responses_input_that_is_a_text_stays_the_first_item():
    request = request_of(Transport.OPENAI_RESPONSES, {**RESPONSES, "input": "go"}, SYNTHESIS)
    note = {"role": "developer", "content": REPETITION_NOTE}
    assert request["input"] == [{"role": "user", "content": "go"}, note]


def test_the_note_of_a_chat_request_is_its_last_message():
    request = request_of(Transport.OPENAI_CHAT_COMPLETIONS, CHAT, ON_BUDGET)
    assert request["messages"] == [*CHAT["messages"], {"role": "system", "content": BUDGET_NOTE}]


def test_the_note_of_an_anthropic_request_ends_the_last_user_message():
    request = request_of(Transport.ANTHROPIC_MESSAGES, ANTHROPIC, SYNTHESIS)
    assert request["system"] == ANTHROPIC["system"]
    result = {"type": "tool_result", "tool_use_id": "a"}
    note = {"type": "text", "text": REPETITION_NOTE}
    *before, _ = ANTHROPIC["messages"]
    assert request["messages"] == [*before, {"role": "user", "content": [result, note]}]


@pytest.mark.parametrize(
    ("last", "expected"),
    [
        pytest.param(
            {"role": "user", "content": "go"},
            [{"role": "user", "content": f"go\n\n{REPETITION_NOTE}"}],
            id="behind a text",
        ),
        pytest.param(
            {"role": "user", "content": ""},
            [{"role": "user", "content": REPETITION_NOTE}],
            id="in place of an empty text",
        ),
        pytest.param(
            {"role": "user"},
            [{"role": "user", "content": [{"type": "text", "text": REPETITION_NOTE}]}],
            id="as the only content",
        ),
        pytest.param(
            {"role": "assistant", "content": "so far"},
            [
                {"role": "assistant", "content": "so far"},
                {"role": "user", "content": REPETITION_NOTE},
            ],
            id="after the model's own message",
        ),
    ],
)
@pytest.mark.parametrize("transport", [Transport.ANTHROPIC_MESSAGES, Transport.XML_FALLBACK])
def test_a_note_for_a_transport_that_knows_system_text_at_the_start_alone(
    transport, last, expected
):
    request = request_of(transport, {"messages": [last]}, SYNTHESIS)
    assert request["messages"] == expected


def test_a_note_without_any_message_is_one():
    request = request_of(Transport.ANTHROPIC_MESSAGES, {"messages": []}, SYNTHESIS)
    assert request["messages"] == [{"role": "user", "content": REPETITION_NOTE}]


def test_an_ordinary_xml_request_teaches_the_tools_in_its_system_message():
    request = request_of(Transport.XML_FALLBACK, {**XML, "tools": [1], "tool_choice": 1}, ORDINARY)
    taught = "be brief\n\nwrite <fetch/> with this schema: {}"
    assert request == {
        "model": "m",
        "messages": [{"role": "system", "content": taught}, {"role": "user", "content": "go"}],
    }


def test_an_xml_request_without_a_system_message_gets_one():
    body = {"tool_instructions": "write <fetch/>", "messages": [{"role": "user", "content": "go"}]}
    request = request_of(Transport.XML_FALLBACK, body, ORDINARY)
    assert request == {
        "messages": [
            {"role": "system", "content": "write <fetch/>"},
            {"role": "user", "content": "go"},
        ]
    }


def test_a_synthesis_xml_request_holds_neither_instructions_nor_fields_for_tools():
    body = {**XML, "tools": [1], "parallel_tool_calls": True}
    request = request_of(Transport.XML_FALLBACK, body, SYNTHESIS)
    assert request == {
        "model": "m",
        "messages": [
            {"role": "system", "content": "be brief"},
            {"role": "user", "content": f"go\n\n{REPETITION_NOTE}"},
        ],
    }


def test_an_xml_request_of_a_host_without_tools_is_its_body():
    body = {"messages": [{"role": "user", "content": "go"}]}
    assert request_of(Transport.XML_FALLBACK, body, ORDINARY) == body


@pytest.mark.parametrize(
    ("transport", "body", "words"),
    [
        pytest.param(Transport.OPENAI_RESPONSES, {"input": 7}, "input must be a list", id="input"),
        pytest.param(Transport.OPENAI_CHAT_COMPLETIONS, {}, "messages must be a list", id="none"),
        pytest.param(
            Transport.ANTHROPIC_MESSAGES, {"messages": "go"}, "messages must be a list", id="text"
        ),
    ],
)
def test_a_body_the_note_cannot_join_is_refused(transport, body, words):
    with pytest.raises(ValueError, match=words):
        request_of(transport, body, SYNTHESIS)


def test_instructions_that_are_no_text_are_refused():
    body = {"messages": [], "tool_instructions": ["write <fetch/>"]}
    with pytest.raises(ValueError, match="tool_instructions must be a text"):
        request_of(Transport.XML_FALLBACK, body, ORDINARY)


def test_an_unknown_transport_is_refused():
    with pytest.raises(ValueError, match="pigeon"):
        request_of("pigeon", CHAT, ORDINARY)  # type: ignore[arg-type]  # the fault under test


def test_the_choice_of_one_request_is_not_that_of_another():
    first = request_of(Transport.ANTHROPIC_MESSAGES, ANTHROPIC, SYNTHESIS)
    second = request_of(Transport.ANTHROPIC_MESSAGES, ANTHROPIC, SYNTHESIS)
    assert first["tool_choice"] == second["tool_choice"]
    assert first["tool_choice"] is not second["tool_choice"]
