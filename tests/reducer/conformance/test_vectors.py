import pytest

from guardwave.reducer.conformance.vectors import Vector, VectorStep, parse, run
from tests.support.shipped_vectors import shipped


def document(**changed):
    step = {"input": {"observations": []}, "expect": {"decision": "none"}}
    return [{"name": "a vector", "basis": "author", "config": {}, "steps": [step]} | changed]


@pytest.mark.parametrize(
    ("guard", "count"),
    [
        pytest.param("repeated-failure", 104, id="repeated failure"),
        pytest.param("duplicate-call-id", 32, id="duplicate call id"),
        pytest.param("identical-call", 37, id="identical call"),
        pytest.param("side-effect", 49, id="side effect"),
    ],
)
def test_each_shipped_file_is_whole_and_identifies_its_guard(guard, count):
    found = shipped(guard)
    assert found.guard == guard
    assert len(found.vectors) == count
    assert len({vector.name for vector in found.vectors}) == count


@pytest.mark.parametrize("guard", ["repeated-failure", "duplicate-call-id", "side-effect"])
def test_every_vector_without_common_words_identifies_its_guard_alone(guard):
    for vector in shipped(guard).vectors:
        alone = {
            "name": vector.name,
            "config": vector.config,
            "steps": [{"input": step.event, "expect": step.expect} for step in vector.steps],
        }
        assert parse([alone]).guard == guard


def test_a_step_without_event_is_read_as_it_is():
    (vector,) = parse(document()).vectors
    assert vector == Vector(
        "a vector", "author", {}, (VectorStep({"observations": []}, {"decision": "none"}),)
    )


def test_configuration_and_basis_may_be_left_out():
    bare = document()
    del bare[0]["config"], bare[0]["basis"]
    (vector,) = parse(bare).vectors
    assert (vector.config, vector.basis) == ({}, "")


@pytest.mark.parametrize(
    ("broken", "place"),
    [
        pytest.param({"vectors": []}, "no list of vectors", id="an object"),
        pytest.param([], "no list of vectors", id="an empty list"),
        pytest.param([7], "/0: must be an object", id="a number for a vector"),
        pytest.param(document(name=7), "/0/name: must be a text", id="a name that is no text"),
        pytest.param(document(config=[]), "/0/config: must be an object", id="a list for config"),
        pytest.param(document(steps={}), "/0/steps: must be a list", id="an object for steps"),
        pytest.param(document(steps="ab"), "/0/steps: must be a list", id="a text for steps"),
        pytest.param(document(steps=[]), "/0/steps: a vector without", id="no step"),
        pytest.param(
            document(steps=[1]), "/0/steps/0: must be an object", id="a number for a step"
        ),
        pytest.param(
            document(steps=[{"input": {}}]), "/0/steps/0/expect: is missing", id="no expectation"
        ),
        pytest.param(
            document(steps=[{"expect": {}}]), "/0/steps/0/input: is missing", id="no input"
        ),
    ],
)
def test_a_broken_document_is_refused_by_its_place(broken, place):
    with pytest.raises(ValueError, match=place):
        parse(broken)


def test_a_broken_vector_fails_alone_and_those_beside_it_are_read():
    whole = document()[0]
    broken = [{"name": "cut short", "steps": [{"input": {}}]}, whole, 7, whole]
    found = parse(broken)
    assert [vector.name for vector in found.vectors] == ["a vector"] * 2
    assert found.broken == (
        ("/0", ("/0/steps/0/expect", "a vector", "refused: is missing")),
        ("/2", ("/2", "a vector", "refused: must be an object")),
    )
    assert parse([whole]).broken == ()


def test_of_vectors_that_are_all_broken_the_first_is_named():
    with pytest.raises(ValueError, match="/0: must be an object"):
        parse([7, {"name": 1, "steps": [{}]}])


def test_words_of_no_guard_are_refused():
    with pytest.raises(ValueError, match="fit no guard; use the words of one of repeated-failure"):
        parse(document(steps=[{"input": {"event": "new_prompt"}, "expect": {"decision": "none"}}]))


def test_words_of_two_guards_alike_are_refused():
    mixed = document(config={"suffix": "x"}, steps=[{"input": {}, "expect": {"phase": "idle"}}])
    with pytest.raises(ValueError, match="fit repeated-failure and duplicate-call-id"):
        parse(mixed)


def test_a_named_guard_needs_no_inference():
    silent = document(steps=[{"input": {"event": "new_prompt"}, "expect": {}}])
    assert parse(silent, guard="duplicate-call-id").guard == "duplicate-call-id"


def test_an_unknown_guard_is_refused():
    with pytest.raises(ValueError, match="guard is 'clocks'; pass one of repeated-failure"):
        parse(document(), guard="clocks")


class Echo:
    """A machine of the test: it answers with how often it was asked, and what it was given."""

    def __init__(self, config):
        if config.get("mode") == "refuse":
            raise ValueError("mode is unknown")
        self.asked = 0

    def step(self, given):
        if "break" in given:
            raise given["break"]
        if "refuse" in given:
            raise ValueError("refuse is not for a machine")
        self.asked += 1
        return {"asked": self.asked, **given}


def vector(*steps, **config):
    return Vector("counting", "", config, tuple(VectorStep(*step) for step in steps))


def test_a_vector_runs_on_one_machine_in_order():
    counting = vector(({}, {"asked": 1}), ({}, {"asked": 2}), ({"a": 1}, {"a": 1, "asked": 3}))
    assert run(counting, Echo) is None
    assert run(counting, Echo) is None


def test_the_first_difference_is_named_with_its_step_and_both_values():
    failure = run(vector(({}, {"asked": 1}), ({"a": [1]}, {"a": [2]}), ({}, {"asked": 0})), Echo)
    assert failure == ("counting", ("/steps/1/expect/a/0", "2", "1"))


def test_a_machine_that_refuses_an_input_fails_the_vector_at_that_input():
    failure = run(vector(({}, {}), ({"refuse": 1}, {})), Echo)
    refused = ("/steps/1/input", "accepted", "refused: refuse is not for a machine")
    assert failure == ("counting", refused)


def test_a_machine_that_refuses_its_configuration_fails_the_vector_there():
    failure = run(vector(({}, {}), mode="refuse"), Echo)
    assert failure == ("counting", ("/config", "accepted", "refused: mode is unknown"))


@pytest.mark.parametrize("fault", [TypeError("a"), KeyError("a"), RecursionError("a")])
def test_a_machine_that_breaks_fails_the_vector_and_not_the_run(fault):
    failure = run(vector(({}, {}), ({"break": fault}, {})), Echo)
    broke = f"broke: {type(fault).__name__}: {fault}"
    assert failure == ("counting", ("/steps/1/input", "accepted", broke))
