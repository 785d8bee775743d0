"""Filters for set membership: a few bits for each key, and the same bytes as every other tamis.

>>> import tamis
>>> seen = tamis.Filter(keys=1_000_000, rate=0.001)
>>> seen.add("https://example.org/")
True
>>> "https://example.org/" in seen
True

`tamis.plan` shows which kinds meet a goal, `tamis.open` opens a file in place, and `tamis.spark`,
`tamis.dask` and `tamis.ray` build filters on a cluster. `tamis.Parts` is for sets larger than one
machine.
"""

from ._folder import Parts
from ._plan import Plans, plan
from ._tamis import (
    Error,
    Filter,
    FormatError,
    FullError,
    GoalError,
    MismatchError,
    UnsupportedError,
    __version__,
    _unpickle,
    open,
)

__all__ = [
    "Error",
    "Filter",
    "FormatError",
    "FullError",
    "GoalError",
    "MismatchError",
    "Parts",
    "Plans",
    "UnsupportedError",
    "__version__",
    "open",
    "plan",
]
