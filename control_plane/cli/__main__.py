"""`python -m control_plane.cli`, as the supervisor starts its children."""

from control_plane.cli import main

main(prog_name="guardwave")
