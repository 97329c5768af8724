"""`guardwave plan`: a plan of the next wave, requested from a server."""

import json
import sys
import time
import uuid
from collections.abc import Sequence

import click
from rich.console import Console
from rich.table import Column, Table

from guardwave.control_plane.cli.http_client import (
    JsonMember,
    JsonObject,
    Server,
    print_progress,
    server_at,
    server_option,
)
from guardwave.reducer.vocabulary import Role

_POLL_S = 0.5
_TIMED_OUT = 8
_PIPE_WIDTH = 160


@click.command()
@click.argument("environment")
@click.argument("guard")
@server_option
@click.option(
    "--share-bps",
    "shares_bps",
    multiple=True,
    type=click.IntRange(1, 9999),
    help="Basis points to treat; the policy's when left out. May be repeated.",
)
@click.option(
    "--days",
    multiple=True,
    type=click.IntRange(1, 90),
    help="Complete days of the wave; the policy's when left out. May be repeated.",
)
@click.option(
    "--looks",
    default=1,
    show_default=True,
    type=click.IntRange(1, 8),
    help="How many looks the wave will declare; they share alpha.",
)
@click.option("--timeout", default=600.0, show_default=True, help="Seconds to wait.")
@click.option("-o", "--output", type=click.Choice(["table", "json"]), default="table")
def plan(  # noqa: PLR0913  # click passes every option by name
    environment: str,
    guard: str,
    *,
    url: str,
    shares_bps: Sequence[int],
    days: Sequence[int],
    looks: int,
    timeout: float,
    output: str,
) -> None:
    """Plan what a wave of GUARD in ENVIRONMENT could prove before it starts.

    Asks the server at GUARDWAVE_URL, with a token of role operator in GUARDWAVE_TOKEN.

    Ends with 0 when the plan is made, 1 when it cannot be, and 8 when it takes too long.
    """
    server = server_at(url, role=Role.OPERATOR, environment=environment)
    address = f"/api/v1/environments/{environment}/guards/{guard}/plans"
    body: JsonObject = {"shares_bps": list(shares_bps), "days": list(days), "looks": looks}
    requested = server.post(address, body, key=str(uuid.uuid4()))
    plan = _wait_for(server, f"{address}/{requested['id']}", timeout)
    if plan["status"] != "done":
        raise click.ClickException(f"plan {plan['id']} is {plan['status']}: {plan['sentence']}")
    if output == "json":
        click.echo(json.dumps(plan))
    else:
        _print(plan)


def _wait_for(server: Server, address: str, timeout: float) -> JsonObject:
    print_progress(f"waiting for {server.url}{address}")
    end = time.monotonic() + timeout
    while True:
        found = server.get(address)
        if found["status"] != "pending":
            return found
        if time.monotonic() > end:
            print_progress(
                f"guardwave: the plan is still pending after {timeout:g} s; it goes on there"
            )
            raise SystemExit(_TIMED_OUT)
        time.sleep(_POLL_S)


def _print(plan: JsonObject) -> None:
    numbers = ("share", "days", "owners", "treated", "power", "owners needed", "lacks data")
    columns = [Column(name, justify="right") for name in numbers]
    table = Table("metric", *columns, box=None)
    remarks = []
    for wave in _objects(plan["result"], "waves"):
        share = f"{float(str(wave['share_bps'])) / 100:g} %"
        for metric in _objects(wave, "metrics"):
            table.add_row(
                str(metric["metric"]),
                share,
                *(str(wave[name]) for name in ("days", "owners", "treated")),
                _percent(metric["power"]),
                "no roster" if metric["owners_needed"] is None else str(metric["owners_needed"]),
                _percent(metric.get("lacks_data")),
            )
            remark = metric.get("remark")
            # The sentence holds the remark about the metric that lacks data most often.
            if remark is not None and str(remark) not in str(plan["sentence"]):
                of = f"{metric['metric']} at {share} for {wave['days']} days"
                remarks.append(f"{of}: {remark}.")
    Console(width=None if sys.stdout.isatty() else _PIPE_WIDTH).print(table)
    for remark in remarks:
        click.echo(remark)
    click.echo(str(plan["sentence"]))


def _objects(parent: JsonMember, name: str) -> list[JsonObject]:
    """Return the JSON objects of a list that the server is known to send."""
    items = parent[name] if isinstance(parent, dict) else None
    return [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []


def _percent(value: JsonMember) -> str:
    return f"{100 * value:.0f} %" if isinstance(value, float | int) else "unknown"
