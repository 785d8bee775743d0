"""Plans as a table that prints well."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ._tamis import _plan

_COLUMNS = {
    "kind": "kind",
    "rate": "rate",
    "bits_per_key": "bits/key",
    "wire_bits_per_key": "wire bits/key",
    "blocks_per_hit": "blocks/hit",
    "blocks_per_miss": "blocks/miss",
    "reason": "why",
}


class Plans(list[dict[str, Any]]):
    """Rows of `plan`, the best first: a list of dicts that prints as a table."""

    def __repr__(self) -> str:
        table = [list(_COLUMNS.values())]
        table += [[_cell(name, row[name]) for name in _COLUMNS] for row in self]
        widths = [max(len(row[at]) for row in table) for at in range(len(_COLUMNS))]
        lines = ("  ".join(map(_pad, row, widths, _COLUMNS)).rstrip() for row in table)
        return "\n".join(lines)


def _cell(name: str, value: Any) -> str:
    if isinstance(value, str):
        return value
    return f"{value:.3%}" if name == "rate" else f"{value:.2f}"


def _pad(text: str, width: int, name: str) -> str:
    return text.ljust(width) if name in ("kind", "reason") else text.rjust(width)


def plan(
    keys: int,
    rate: float | None = None,
    kind: str = "auto",
    ops: Iterable[str] | None = None,
    *,
    bits_per_key: float | None = None,
    memory: int | None = None,
    params: Mapping[str, int] | None = None,
    minimise: str | None = None,
) -> Plans:
    """Which filters meet a goal, the best first. Nothing is built.

    The arguments are those of `Filter`, and what they plan is what it builds.

    >>> plans = tamis.plan(1_000_000, rate=0.001, ops=["insert", "remove"])
    >>> plans[0]["kind"]
    'blocked-rank'
    >>> plans[0]["rate"] <= 0.001
    True
    """
    fixed = None if params is None else dict(params)
    return Plans(_plan(keys, rate, kind, ops, bits_per_key, memory, fixed, minimise))
