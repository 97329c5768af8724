"""The header of a file of owners: which columns are meant, passed over, or missing."""

import difflib
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import pandas as pd

from analysis.frames import OWNER
from analysis.loops import LOOPS
from analysis.untold import COLUMNS as UNTOLD
from analysis.untold import ENDED

ARM = "arm"
# What a file calls each count of owner totals.
COUNT_NAMES: Mapping[str, str] = {
    "started": "prompts",
    "cancelled": "cancelled",
    "completed": "completions",
    "disrupted": "disconnects",
    "tokens": "tokens",
    "turns": "turns",
}
BEFORE = "pre_"
COUNTED = tuple(name for name in COUNT_NAMES.values() if name != "cancelled")
NEEDED = (OWNER, ARM, *COUNTED)
NEEDED_BEFORE = tuple(f"{BEFORE}{name}" for name in COUNTED)
ALL_BEFORE = (*NEEDED_BEFORE, f"{BEFORE}cancelled")
HISTOGRAM, SCALE, BOUNDS = "latency_hist", "latency_scale", "latency_bounds"
OF_ENDS = (ENDED, *UNTOLD.values())
KNOWN = (*NEEDED, "cancelled", LOOPS, *OF_ENDS, HISTOGRAM, SCALE, BOUNDS, *ALL_BEFORE)
# What evidence calls the same as a file of owners does.
EVIDENCE_NAMES: Mapping[str, str] = {
    "cohort": ARM,
    **{name: written for name, written in COUNT_NAMES.items() if name != written},
}
# How alike two names are (difflib) when one is taken for a slip of the other.
ALIKE = 0.85
# What pandas calls an index that it wrote without a name.
_INDEX = re.compile(r"^$|^Unnamed: \d+$")


class Known(NamedTuple):
    """The columns of a file that are known, and what was said of the others in `remarks`."""

    file: pd.DataFrame
    remarks: tuple[str, ...]


def known_columns(file: pd.DataFrame) -> Known:
    """Return the known columns under their trimmed names; others are passed over with a remark.

    An index that pandas wrote is passed over without a word, and columns of the days before the
    wave that lack one of their kind are passed over together: a part of them adjusts nothing.

    Raises:
        ValueError: for a column that is missing, there twice, or looks like a slip of a known one.
    """
    file = file.rename(columns=lambda name: str(name).strip())
    names = [name for name in file.columns if not _INDEX.match(name)]
    unknown = [name for name in names if name not in KNOWN]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"column {name!r} is there twice; keep one of them")
    for name in unknown:
        alike = difflib.get_close_matches(name.lower(), KNOWN, n=1, cutoff=ALIKE)
        if alike:
            raise ValueError(
                f"column {name!r} is not known and looks like {alike[0]!r}; rename it or drop it"
            )
    _refuse_missing(names)
    remarks = []
    if unknown:
        remarks.append(_passed_over(unknown, "not known", "known are " + ", ".join(KNOWN)))
    before = [name for name in names if name in ALL_BEFORE]
    lacking = [name for name in NEEDED_BEFORE if name not in before]
    if before and lacking:
        missing = f"without {', '.join(lacking)} nothing is adjusted by the days before"
        remarks.append(_passed_over(before, "only a part of the days before", missing))
        names = [name for name in names if name not in before]
    return Known(file[[name for name in names if name in KNOWN]], tuple(remarks))


def _refuse_missing(names: Sequence[str]) -> None:
    needed = [*NEEDED]
    if HISTOGRAM in names and not {SCALE, BOUNDS} & set(names):
        needed.append(SCALE)
    if {SCALE, BOUNDS} & set(names):
        needed.append(HISTOGRAM)
    missing = [column for column in needed if column not in names]
    if missing:
        raise ValueError(_what_lacks(missing, names))
    if {SCALE, BOUNDS} <= set(names):
        raise ValueError(f"columns {SCALE!r} and {BOUNDS!r} exclude each other; give one of them")


def _what_lacks(missing: Sequence[str], names: Sequence[str]) -> str:
    """Say what a file lacks, and which of its columns may be meant under evidence's own name."""
    are = "column" if len(missing) == 1 else "columns"
    verb = "is" if len(missing) == 1 else "are"
    told = f"{are} {', '.join(map(repr, missing))} {verb} missing"
    renamed = [
        f"{own!r} to {meant!r}"
        for own, meant in EVIDENCE_NAMES.items()
        if meant in missing and own in names
    ]
    if renamed:
        told += f"; rename {', '.join(renamed)}, the names of a file with one row per owner"
    return f"{told}; the columns are {', '.join(map(repr, names))}"


def _passed_over(names: Sequence[str], why: str, told: str) -> str:
    are = "column" if len(names) == 1 else "columns"
    return f"{are} {', '.join(map(repr, names))} passed over: {why}; {told}"
