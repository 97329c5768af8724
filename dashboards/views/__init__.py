"""Views: one module for each page; it parses, calls one query or command, and renders."""

from guardwave.dashboards.views import gates, guards, overview, rollbacks, sign_in

__all__ = ["gates", "guards", "overview", "rollbacks", "sign_in"]
