"""Dashboards: the pages a person reads, with their forms, templates and plots."""

from guardwave.dashboards import views
from guardwave.dashboards.blueprint import blueprint
from guardwave.dashboards.problems import asks_for_page, problem_page

__all__ = [
    "asks_for_page",
    "blueprint",
    "problem_page",
    "views",
]
