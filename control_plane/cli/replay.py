"""`guardwave replay`: a verdict made again from its evidence bundle, compared byte by byte."""

import json
from pathlib import Path

import click

from guardwave.control_plane.cli.http_client import Server, print_progress, server_at, server_option
from guardwave.control_plane.jobs.bundles import Bundle, unpack_bundle
from guardwave.control_plane.jobs.replay import replay as replayed
from guardwave.reducer.vocabulary import Role

_DIFFERS = 1


@click.command()
@click.argument("evaluation")
@server_option
@click.option(
    "--save", type=click.Path(dir_okay=False, path_type=Path), help="Keep the bundle in this file."
)
@click.option("-o", "--output", type=click.Choice(["table", "json"]), default="table")
def replay(evaluation: str, *, url: str, save: Path | None, output: str) -> None:
    """Recompute EVALUATION and compare it with what was stored, byte by byte.

    EVALUATION is a bundle file, which suffices alone, or ENVIRONMENT/GUARD/NUMBER: then the server
    at GUARDWAVE_URL is asked, with a token of role viewer or above in GUARDWAVE_TOKEN.

    Ends with 0 when both are the same, and with 1 and the first difference when they are not.
    """
    content, digest = _read(evaluation, url)
    if save is not None:
        save.write_bytes(content)
    try:
        bundle = unpack_bundle(content)
    except ValueError as error:
        raise click.ClickException(f"{evaluation}: {error}") from error
    found = replayed(bundle)
    difference = found.difference
    if digest is not None and digest != bundle.digest:
        difference = f"the evaluation's digest is {digest}, its bundle's is {bundle.digest}"
    if output == "json":
        answer = {
            "environment": bundle.gathered.environment,
            "guard": bundle.gathered.guard,
            "evaluation": bundle.evaluation,
            "same": difference is None,
            "difference": difference,
            "recorded_digest": found.recorded_digest,
            "digest": found.digest or None,
            "code_version": bundle.gathered.code_version,
        }
        click.echo(json.dumps(answer))
    else:
        click.echo(_sentence(bundle, difference))
    if difference is not None:
        raise SystemExit(_DIFFERS)


def _read(evaluation: str, url: str) -> tuple[bytes, str | None]:
    """Return the bundle, and the digest that a server states for its evaluation."""
    file = Path(evaluation)
    if file.is_file():
        return file.read_bytes(), None
    parts = evaluation.split("/")
    if len(parts) != 3 or not parts[2].isdecimal():
        raise click.UsageError(
            f"{evaluation!r} is neither a file nor ENVIRONMENT/GUARD/NUMBER of an evaluation"
        )
    environment, guard, number = parts
    return _fetch(
        server_at(url, role=Role.VIEWER, environment=environment),
        f"/api/v1/environments/{environment}/guards/{guard}/gate-evaluations/{number}",
    )


def _fetch(server: Server, address: str) -> tuple[bytes, str | None]:
    stated = server.get(address)
    if stated.get("status") != "done":
        raise click.ClickException(
            f"the evaluation is {stated.get('status')}; only one that is done can be replayed"
        )
    print_progress(f"fetching the bundle of {address.rpartition('/')[2]} from {server.url}")
    return server.fetch(f"{address}/bundle"), str(stated.get("digest"))


def _sentence(bundle: Bundle, difference: str | None) -> str:
    gathered = bundle.gathered
    name = f"evaluation {bundle.evaluation} of {gathered.guard} in {gathered.environment}"
    if difference is None:
        return f"{name}: the same, byte by byte (sha256 {bundle.digest})"
    return f"{name}, made by guardwave {gathered.code_version}: not the same; {difference}"
