"""Filters on Ray: built by tasks, asked by tasks.

    from tamis import ray

    seen = ray.build(crawl, "url", rate=0.001)             # a tamis.Filter
    fresh = ray.semi_filter(orders, "customer", seen)      # rows whose key may be in

The collections are those of `ray.data`. Nulls are no keys.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from . import _folder, _parts, _tamis
from ._folder import Parts
from ._tamis import Filter

_ROWS = 5_000_000
"""Rows of a group in `dedup`: what one task can hold."""


def build(
    ds: Any,
    column: str | Sequence[str],
    rate: float = 0.01,
    keys: int | None = None,
    *,
    kind: str = _parts.KIND,
    seed: int = 0,
) -> Filter:
    """A filter of the keys in a column, or of the tuples in several.

    Every block becomes a part, and parts are merged as a tree, all in tasks. `keys` is the number
    of keys to plan for; without it they are counted first.
    """
    import ray

    names = _parts.columns_of(column)
    options = _parts.options_of(rate, kind, seed)
    blocks = ds.select_columns(names).to_arrow_refs()
    if keys is None:
        counted = ray.remote(_count)
        keys = sum(ray.get([counted.remote(block) for block in blocks]))
    part, merge = ray.remote(_part), ray.remote(_merge)
    parts = [part.remote(block, keys, options) for block in blocks]
    if not parts:
        return Filter(keys, **options)
    while len(parts) > 1:
        groups = range(0, len(parts), _parts.FAN_IN)
        parts = [merge.remote(*parts[start : start + _parts.FAN_IN]) for start in groups]
    filter: Filter = ray.get(parts[0])
    return filter


def build_parts(
    ds: Any,
    column: str | Sequence[str],
    folder: str,
    parts: int,
    rate: float = 0.01,
    *,
    kind: str = "auto",
    seed: int = 0,
) -> Parts:
    """A set larger than one machine: `parts` filters in a folder that all workers and this process
    see. Workers send each other 8 bytes a key; a key that comes again is taken once. The folder
    must hold no parts yet.
    """
    import ray

    names = _parts.columns_of(column)
    options = _folder.options_of(folder, parts, rate, kind, seed)
    cut, write = ray.remote(num_returns=parts)(_cut), ray.remote(_write)
    pieces = [cut.remote(block, parts, seed) for block in ds.select_columns(names).to_arrow_refs()]
    # One return is no list.
    pieces = [[piece] for piece in pieces] if parts == 1 else pieces
    lines = [
        write.remote(folder, part, options, *(piece[part] for piece in pieces))
        for part in range(parts)
    ]
    return _folder.finish(folder, dict(enumerate(ray.get(lines))), parts, options)


def contains(
    ds: Any, column: str | Sequence[str], filter: Filter | Parts, name: str = "contains"
) -> Any:
    """`ds` with one more column, `name`: whether the key of the row may be in `filter`."""
    return _ask(ds, column, filter, lambda table, answers: table.append_column(name, answers))


def semi_filter(ds: Any, column: str | Sequence[str], filter: Filter | Parts) -> Any:
    """The rows of `ds` whose key may be in `filter`: all that match, and of the rest the share
    `filter.rate`."""
    return _ask(ds, column, filter, lambda table, answers: table.filter(answers))


def dedup(
    ds: Any, columns: str | Sequence[str], rate: float = 1e-6, keys: int | None = None
) -> Any:
    """Each key of `ds` once. Rows of one key meet in a group, and the first that comes stays.

    A row of a new key is dropped with probability `rate`. Rows with a null among `columns` all
    stay, for a null is no key.
    """
    names = _parts.columns_of(columns)
    options = _parts.options_of(rate, "auto", 0)
    groups = max(1, -(-(ds.count() if keys is None else keys) // _ROWS))

    def first(frame: Any) -> Any:
        import pyarrow

        rows = pyarrow.Table.from_pandas(frame[names], preserve_index=False)
        new = Filter(max(1, len(frame)), **options).add_new(rows, out="numpy")
        return frame[new | frame[names].isna().any(axis=1).to_numpy()].drop(columns=_GROUP)

    def numbered(frame: Any) -> Any:
        import pandas

        hashes = pandas.util.hash_pandas_object(frame[names], index=False)
        return frame.assign(**{_GROUP: hashes.to_numpy() % groups})

    grouped = ds.map_batches(numbered, batch_format="pandas").groupby(_GROUP)
    return grouped.map_groups(first, batch_format="pandas")


_GROUP = "__tamis_group"


def _count(table: Any) -> int:
    return int(table.num_rows if table.num_columns == 0 else table.drop_null().num_rows)


def _part(table: Any, keys: int, options: dict[str, Any]) -> Filter:
    return _parts.part([table] if table.num_rows else [], keys, options)


def _cut(table: Any, parts: int, seed: int) -> Any:
    cut = _tamis._cut(table if table.num_rows else [], parts, seed)
    return cut[0] if parts == 1 else cut


def _write(folder: str, part: int, options: dict[str, Any], *pieces: bytes) -> dict[str, Any]:
    return _folder.write(pieces, folder, part, options)


def _merge(*parts: Filter) -> Filter:
    return _parts.merged(parts)


def _ask(ds: Any, column: str | Sequence[str], filter: Filter | Parts, answer: Any) -> Any:
    import ray

    names = _parts.columns_of(column)
    shared = ray.put(filter)

    def ask(table: Any) -> Any:
        answers = ray.get(shared).contains(table.select(names), out="arrow")
        return answer(table, answers)

    return ds.map_batches(ask, batch_format="pyarrow", zero_copy_batch=True)
