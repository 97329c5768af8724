"""All pages as one blueprint, ready to register on the app."""

from dashboards.blueprint import blueprint
from dashboards.views import gates, guards, overview, rollbacks, signing_in

__all__ = ["blueprint", "gates", "guards", "overview", "rollbacks", "signing_in"]
