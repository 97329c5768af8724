"""Module entry point: `python -m guardwave.control_plane.cli`, for the supervisor's children."""

from guardwave.control_plane.cli import main

main(prog_name="guardwave")
