"""Evaluation requests: asking for a gate evaluation, which the worker makes."""

from guardwave.control_plane.core.errors import RuleViolated, StateConflict
from guardwave.control_plane.core.state import Actor, Evaluation
from guardwave.control_plane.rollouts.context import Context
from guardwave.control_plane.rollouts.loading import load_environment, load_rollout
from guardwave.control_plane.stores.jobs import Job, JobKind
from guardwave.reducer.rollout.state import gate_for
from guardwave.reducer.vocabulary import Gate


def request_evaluation(
    context: Context, environment: str, guard: str, *, gate: Gate, actor: Actor
) -> Evaluation:
    """Store a pending evaluation of the phase's gate and queue it for the worker.

    Raises:
        NotFound: no such environment or rollout.
        RuleViolated: the gate is not that of the phase, or the phase has none.
        StateConflict: no wave is open, so there is no evidence to evaluate.
    """
    load_environment(context, environment)
    rollout = load_rollout(context, environment, guard)
    due = gate_for(rollout.phase)
    if gate is not due:
        raise RuleViolated(
            f"the phase is {rollout.phase}, its gate is {due or 'none'}; {gate} cannot be evaluated"
        )
    if rollout.wave == 0:
        raise StateConflict(
            "no wave is open since a mode was lowered; start one with POST .../waves"
        )
    evaluation = Evaluation(
        id=context.gates.next_evaluation(environment, guard),
        guard=guard,
        gate=gate,
        requested_at=context.clock.now(),
        actor=actor,
        wave=rollout.wave,
    )
    context.gates.request_evaluation(environment, evaluation)
    context.jobs.put(environment, Job(JobKind.EVALUATE, guard, evaluation.id))
    return evaluation
