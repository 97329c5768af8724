"""The overview: every rollout by environment, worst first, and the fragments that keep it fresh."""

from dataclasses import dataclass
from hashlib import sha256
from itertools import groupby

from flask import render_template, request

from control_plane.errors import NotFound
from control_plane.queries import overview as queries
from control_plane.queries.pages import GuardCard, OverviewPage
from dashboards.blueprint import blueprint
from dashboards.sessions import context, require, visible
from reducer.vocabulary import Role


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
    """Return the line that says what a rollout does now, for pages whose rest stands still."""
    require(Role.VIEWER, environment)
    page = queries.overview(context())
    for card in page.cards:
        if (card.environment, card.guard) == (environment, guard):
            return render_template("fragments/now.html", card=card, frame=page.frame)
    raise NotFound(f"no rollout of {guard} in {environment}; see the overview for those there are")


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


def announcement(groups: tuple[EnvironmentGroup, ...]) -> str:
    """Return the modes of all rollouts as one sentence for screen readers."""
    return " ".join(
        f"{card.guard} in {card.environment}: {card.phase}"
        + (f", rolled back: {card.latch.reason}." if card.latch else ".")
        for group in groups
        for card in group.cards
    )


def _render(template: str, only: str | None) -> str:
    page = queries.overview(context())
    names = visible(page.frame.environments)
    if only is not None:
        if only not in names:
            raise NotFound(f"no environment {only}; there are {', '.join(names) or 'none yet'}")
        names = (only,)
    groups = grouped(page, names)
    spoken = announcement(groups)
    digest = sha256(spoken.encode()).hexdigest()[:16]
    return render_template(
        template,
        frame=page.frame,
        groups=groups,
        environment=only,
        announcement=spoken if request.args.get("seen") not in {None, digest} else "",
        seen=digest,
    )
