"""A bar for long batches."""

from __future__ import annotations

import sys
from typing import Any


def bar(total: int | None) -> Any:
    """tqdm's bar if tqdm is installed, otherwise lines on stderr."""
    try:
        from tqdm.auto import tqdm
    except ImportError:
        return _Lines(total)
    return tqdm(total=total, unit="key", unit_scale=True)


class _Lines:
    """Says how far a batch has come, in one line that is written again and again."""

    def __init__(self, total: int | None) -> None:
        self.done = 0
        self.total = total

    def update(self, rows: int) -> None:
        self.done += rows
        of = "" if self.total is None else f" of {self.total:,}"
        print(f"\r{self.done:,}{of} keys", end="", file=sys.stderr, flush=True)

    def close(self) -> None:
        print(file=sys.stderr)
