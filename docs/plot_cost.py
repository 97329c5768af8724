"""Cost plot: draws docs/images/cost.svg, the cost of a gate by owners.

The numbers come from `python benchmarks/analysis.py --million --json benchmarks/results/cost.json`.
"""

import json
from pathlib import Path

import matplotlib as mpl
from matplotlib import pyplot as plt

ROOT = Path(__file__).parents[1]
COSTS = ROOT / "benchmarks" / "results" / "cost.json"
PLOT = ROOT / "docs" / "images" / "cost.svg"
# The limits: 3 s at 10,000 owners, 120 s at 1,000,000.
LIMITS = {10_000: 3.0, 1_000_000: 120.0}
LINES = {
    "gate": ("a whole gate", "#2b6cb0"),
    "by_call": ("statsmodels, one metric by call", "#718096"),
    "by_owner": ("statsmodels, one metric by owner", "#a0aec0"),
    "cr2": ("CR2 with its bound, one metric", "#c05621"),
}


def main() -> None:
    """Draw the plot; the same numbers give the same bytes."""
    mpl.use("svg")
    mpl.rcParams.update({"svg.hashsalt": "guardwave", "svg.fonttype": "none", "font.size": 9})
    costs = json.loads(COSTS.read_text())
    figure, axes = plt.subplots(figsize=(6, 3.4))
    for name, (label, color) in LINES.items():
        points = [(cost["owners"], cost[name]) for cost in costs if cost[name] is not None]
        owners, seconds = zip(*points, strict=True)
        axes.loglog(owners, seconds, marker="o", markersize=4, color=color, label=label)
    axes.loglog(
        list(LIMITS),
        list(LIMITS.values()),
        "v",
        color="#2b6cb0",
        alpha=0.5,
        label="limit of a gate",
    )
    axes.set_xlabel("owners")
    axes.set_ylabel("processor seconds")
    axes.grid(visible=True, alpha=0.3)
    axes.legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5))
    figure.savefig(PLOT, metadata={"Date": None}, bbox_inches="tight")


if __name__ == "__main__":
    main()
