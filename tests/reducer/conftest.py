"""Laws are judged by what they say, not by how fast a loaded machine runs them."""

from hypothesis import HealthCheck, settings

settings.register_profile(
    "guardwave", parent=settings(), deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("guardwave")
