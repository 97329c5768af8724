"""Overview: every rollout by environment, worst first, and the fragments that it polls."""

from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from itertools import groupby

from flask import render_template, request

from guardwave.control_plane.core.errors import NotFound
from guardwave.control_plane.queries import overview as queries
from guardwave.control_plane.queries.page_models import GuardCard, OverviewPage
from guardwave.dashboards.blueprint import blueprint
from guardwave.dashboards.sessions import context, require, visible_environments
from guardwave.reducer.vocabulary import Role

_SEPARATOR = "."


@dataclass(frozen=True, slots=True)
class EnvironmentGroup:
    """One environment and its rollouts, worst first."""

    name: str
    cards: tuple[GuardCard, ...]


@blueprint.get("/")
def overview() -> str:
    """Show every environment that the token may read."""
    return _render("overview.html", None)


@blueprint.get("/environments/<environment>")
def environment(environment: str) -> str:
    """Show one environment."""
    require(Role.VIEWER, environment)
    return _render("overview.html", environment)


@blueprint.get("/fragments/overview")
def overview_fragment() -> str:
    """Return the cards alone, for polling; screen readers hear only the changes since `seen`."""
    name = request.args.get("environment")
    if name is not None:
        require(Role.VIEWER, name)
    return _render("fragments/overview.html", name)


@blueprint.get("/fragments/environments/<environment>/guards/<guard>")
def now_fragment(environment: str, guard: str) -> str:
    """Return the line with a rollout's current phase, for pages whose rest does not change.

    It reports when the rollout left the generation that the page shows; screen readers hear it
    once.
    """
    require(Role.VIEWER, environment)
    page = queries.overview(context())
    card = next(
        (card for card in page.cards if (card.environment, card.guard) == (environment, guard)),
        None,
    )
    if card is None:
        raise NotFound(
            f"no rollout of {guard} in {environment}; the overview lists the rollouts that exist"
        )
    announced = request.args.get("told", type=int)
    is_news = announced is not None and announced != card.generation
    return render_template(
        "fragments/now.html",
        card=card,
        frame=page.frame,
        shown_generation=request.args.get("generation", type=int),
        shown_at=request.args.get("at", type=datetime.fromisoformat),
        news=f"{state_sentence(card)} The rest of this page is out of date." if is_news else "",
    )


def severity_order(card: GuardCard) -> tuple[bool, bool, int, str, str]:
    """Order rollouts: latched, then with violations, then by verdict, then by name."""
    rank = card.gate.verdict.rank if card.gate else -1
    return (card.latch is None, card.open_violations == 0, -rank, card.environment, card.guard)


def group_by_environment(
    page: OverviewPage, names: tuple[str, ...]
) -> tuple[EnvironmentGroup, ...]:
    """Group rollouts by environment; the environment with the worst rollout comes first."""
    cards = sorted(
        (card for card in page.cards if card.environment in names), key=lambda c: c.environment
    )
    by_name = {
        name: tuple(sorted(group, key=severity_order))
        for name, group in groupby(cards, key=lambda card: card.environment)
    }
    ranked = sorted(by_name, key=lambda name: severity_order(by_name[name][0]))
    empty = tuple(name for name in names if name not in by_name)
    return tuple(EnvironmentGroup(name, by_name.get(name, ())) for name in (*ranked, *empty))


def announcement(cards: tuple[GuardCard, ...], seen: str) -> str:
    """Return the state of every rollout that changed since a page with these digests."""
    known = seen.split(_SEPARATOR)
    return " ".join(state_sentence(card) for card in cards if _digest(card) not in known)


def page_digests(cards: tuple[GuardCard, ...]) -> str:
    """Return a digest of every rollout's state, short enough for an address."""
    return _SEPARATOR.join(map(_digest, cards))


def _digest(card: GuardCard) -> str:
    return sha256(state_sentence(card).encode()).hexdigest()[:8]


def state_sentence(card: GuardCard) -> str:
    """Return the state of a rollout as one sentence for screen readers."""
    latch = f", held: {card.latch.reason.rstrip('.')}" if card.latch else ""
    return f"{card.guard} in {card.environment}: {card.phase}{latch}."


def _render(template: str, environment: str | None) -> str:
    page = queries.overview(context())
    names = visible_environments(page.frame.environments)
    if environment is not None:
        if environment not in names:
            raise NotFound(
                f"no environment {environment}; these exist: {', '.join(names) or 'none yet'}"
            )
        names = (environment,)
    groups = group_by_environment(page, names)
    shown = tuple(card for group in groups for card in group.cards)
    seen = request.args.get("seen")
    return render_template(
        template,
        frame=page.frame,
        groups=groups,
        environment=environment,
        announcement="" if seen is None else announcement(shown, seen),
        seen=page_digests(shown),
    )
