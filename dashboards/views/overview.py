"""The overview: every rollout by environment, worst first, and the fragments that keep it fresh."""

from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from itertools import groupby

from flask import render_template, request

from control_plane.errors import NotFound
from control_plane.queries import overview as queries
from control_plane.queries.pages import GuardCard, OverviewPage
from dashboards.blueprint import blueprint
from dashboards.sessions import context, require, visible
from reducer.vocabulary import Role

_BETWEEN = "."


@dataclass(frozen=True, slots=True)
class EnvironmentGroup:
    """One environment and its rollouts, worst first."""

    name: str
    cards: tuple[GuardCard, ...]


@blueprint.get("/")
def overview() -> str:
    """Show every environment that the token may see."""
    return _render("overview.html", None)


@blueprint.get("/environments/<environment>")
def environment(environment: str) -> str:
    """Show one environment."""
    require(Role.VIEWER, environment)
    return _render("overview.html", environment)


@blueprint.get("/fragments/overview")
def overview_fragment() -> str:
    """Return the cards alone, for polling; says aloud only what changed since `seen`."""
    only = request.args.get("environment")
    if only is not None:
        require(Role.VIEWER, only)
    return _render("fragments/overview.html", only)


@blueprint.get("/fragments/environments/<environment>/guards/<guard>")
def now_fragment(environment: str, guard: str) -> str:
    """Return the line that says what a rollout does now, for pages whose rest stands still.

    It says so when the rollout moved on from the generation that the page shows, aloud once.
    """
    require(Role.VIEWER, environment)
    page = queries.overview(context())
    card = next(
        (each for each in page.cards if (each.environment, each.guard) == (environment, guard)),
        None,
    )
    if card is None:
        raise NotFound(
            f"no rollout of {guard} in {environment}; see the overview for those there are"
        )
    told = request.args.get("told", type=int)
    is_news = told is not None and told != card.generation
    return render_template(
        "fragments/now.html",
        card=card,
        frame=page.frame,
        shown_generation=request.args.get("generation", type=int),
        shown_at=request.args.get("at", type=datetime.fromisoformat),
        news=f"{announced(card)} The rest of this page is of before." if is_news else "",
    )


def worst_first(card: GuardCard) -> tuple[bool, bool, int, str, str]:
    """Order rollouts: latched, then violated, then by verdict, then by name."""
    rank = card.gate.verdict.rank if card.gate else -1
    return (card.latch is None, card.open_violations == 0, -rank, card.environment, card.guard)


def grouped(page: OverviewPage, names: tuple[str, ...]) -> tuple[EnvironmentGroup, ...]:
    """Group the rollouts of the named environments; the one with the worst rollout comes first."""
    cards = sorted(
        (card for card in page.cards if card.environment in names), key=lambda c: c.environment
    )
    by_name = {
        name: tuple(sorted(found, key=worst_first))
        for name, found in groupby(cards, key=lambda card: card.environment)
    }
    met = sorted(by_name, key=lambda name: worst_first(by_name[name][0]))
    empty = tuple(name for name in names if name not in by_name)
    return tuple(EnvironmentGroup(name, by_name.get(name, ())) for name in (*met, *empty))


def announcement(cards: tuple[GuardCard, ...], seen: str) -> str:
    """Return where those rollouts stand that are not as a page of this `seen` told them."""
    told = seen.split(_BETWEEN)
    return " ".join(announced(card) for card in cards if _digest(card) not in told)


def seen_of(cards: tuple[GuardCard, ...]) -> str:
    """Return what a page tells of where each rollout stands, short enough for an address."""
    return _BETWEEN.join(map(_digest, cards))


def _digest(card: GuardCard) -> str:
    return sha256(announced(card).encode()).hexdigest()[:8]


def announced(card: GuardCard) -> str:
    """Return where a rollout stands as one sentence for screen readers."""
    why = f", held: {card.latch.reason.rstrip('.')}" if card.latch else ""
    return f"{card.guard} in {card.environment}: {card.phase}{why}."


def _render(template: str, only: str | None) -> str:
    page = queries.overview(context())
    names = visible(page.frame.environments)
    if only is not None:
        if only not in names:
            raise NotFound(f"no environment {only}; there are {', '.join(names) or 'none yet'}")
        names = (only,)
    groups = grouped(page, names)
    shown = tuple(card for group in groups for card in group.cards)
    seen = request.args.get("seen")
    return render_template(
        template,
        frame=page.frame,
        groups=groups,
        environment=only,
        announcement="" if seen is None else announcement(shown, seen),
        seen=seen_of(shown),
    )
