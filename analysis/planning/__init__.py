"""Planning: the power and the minimum data of a wave, before anybody is treated."""

from guardwave.analysis.planning.minimum_data import DataPlan, plan_data
from guardwave.analysis.planning.placebo import PlaceboPlan, Placebos, QuietDays, plan_by_placebo

__all__ = [
    "DataPlan",
    "PlaceboPlan",
    "Placebos",
    "QuietDays",
    "plan_by_placebo",
    "plan_data",
]
