"""What all clusters share: a filter is built in parts, which are merged as a tree.

Every part has the layout of the whole, so that parts can be merged. Those of `rank-indexed` are as
long as their keys when they travel, and merged in any order they give the bytes that one machine
gives; those of `bloom` and `blocked` do so too, but are always as long as the whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ._tamis import Filter

KIND = "rank-indexed"
"""The kind that clusters build unless told otherwise."""

FAN_IN = 4
"""Parts that one task merges: it holds two of them at a time."""

ROOM = 1.25
"""What a share of the keys is planned for: shares by hash differ by a few percent."""


def columns_of(columns: str | Sequence[str]) -> list[str]:
    """One column is a key; several are a tuple."""
    names = [columns] if isinstance(columns, str) else list(columns)
    if not 1 <= len(names) <= 4:
        raise ValueError(f"columns: a key has 1 to 4 columns, not {len(names)}")
    return names


def part(batches: Iterable[Any], keys: int, options: dict[str, Any]) -> Filter:
    """The filter of some batches, with the layout of one for `keys` keys."""
    filter = Filter(keys, **options)
    for batch in batches:
        filter.update(batch)
    return filter


def merged(parts: Iterable[Filter]) -> Filter:
    """One part of many, the first of which is changed."""
    first, *others = parts
    for other in others:
        first.merge(other)
    return first


def options_of(rate: float, kind: str, seed: int) -> dict[str, Any]:
    """How every part is built. What is wrong with it is said here, not by a worker."""
    options: dict[str, Any] = {"rate": rate, "kind": kind, "seed": seed, "ops": ["insert", "merge"]}
    Filter(1, **options)
    return options


def share_of(keys: int, shares: int) -> int:
    """What one of `shares` shares is planned for."""
    return max(1, int(keys / max(1, shares) * ROOM))
