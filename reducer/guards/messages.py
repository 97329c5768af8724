"""Messages: the fixed texts that guards show to a model or a person, without data of a tool."""

# repeated_tool_failure
REPEATED_FAILURE_REMINDER = (
    "The same tool has now failed several times in the same way. Do not try this approach again. "
    "Read what the last result says, then change the approach or put right what it depends on, "
    "or tell the user what stands in the way."
)
REPEATED_FAILURE_STOP = (
    "This turn has ended: after a reminder the same tool failed once more in the same way. "
    "Nothing else is tried until the user writes again."
)

SIDE_EFFECT_NUDGE = (
    "This call was not run: it would do once more what an earlier call with the same meaning has "
    "done, or is doing now. Go on with that call's result. If it has to be done once more, say why "
    "and ask the user first."
)
SIDE_EFFECT_BLOCKED = (
    "This call was not run: an equal call has been carried out already, or is being carried out "
    "now. Go on with that call's result, or tell the user what is still missing."
)
SIDE_EFFECT_WAITING = (
    "This call has not run: it would do once more what an earlier call has done, and a person is "
    "asked first. The answer is still open."
)
SIDE_EFFECT_REFUSED = (
    "This call was not run: a person decided that this is not to be done once more. It will not be "
    "asked again for this request. Go on without it."
)
SIDE_EFFECT_QUESTION = (
    "The agent asks to do once more what an earlier call has done. Shall it run once more?"
)
SIDE_EFFECT_LIKENESS = (
    "The agent asks for something that looks like what an earlier call in this conversation has "
    "done; whether it is the same is for you to say. Shall it run?"
)
SIDE_EFFECT_DECLARATION = (
    "The tool does not say whether it has a side effect, so it is treated as one that has. If "
    "running it twice does no harm, declare `side_effect: false` for it."
)
SIDE_EFFECT_NO_THREAD = (
    "the side-effect guard has thread scope but the call names no thread; repeats are looked for "
    "in its request alone"
)

# duplicate_call_id
DUPLICATE_CALL_ANSWER = (
    "This tool call was not run: an earlier call had the same id and the same arguments, and its "
    "result stands above. Use that result. If a new call is meant, send it under an id that has "
    "not been used, or with the arguments that differ."
)
DUPLICATE_CALL_STOP = (
    "This turn has ended: a tool call that was already answered came again under the same id, so "
    "none of the calls beside it were run."
)

# identical_call
REPETITION_NOTE = (
    "Note of the platform: work has stopped here because the same tool call kept being repeated. "
    "Do not ask for another tool. Give the best answer that what is above supports, name what is "
    "missing or was not checked, and call nothing done that was not finished."
)
BUDGET_NOTE = (
    "Note of the platform: work has stopped here because the budget of this run is almost used "
    "up. Do not ask for another tool. Give the best answer that what is above supports, name what "
    "is missing or was not checked, and call nothing done that was not finished."
)

# pipeline: the stops of protections without a text of their own
INVALID_PARAMS_STOP = (
    "This turn has ended: the same tool was called three times in a row with parameters that it "
    "does not take. Nothing else is tried until the user writes again."
)
IDENTICAL_CALL_STOP = (
    "This turn has ended: the same tool call was asked for once more after it had been repeated "
    "up to its limit. None of the calls of that batch was run."
)
SIDE_EFFECT_STOP = (
    "This turn has ended: a call would have done once more what an earlier call has done, and was "
    "not run. The results of the calls beside it stand above."
)
TOTAL_CALLS_STOP = (
    "This turn has ended: it has used all the tool calls that one prompt may have. Nothing else "
    "is tried until the user writes again."
)
