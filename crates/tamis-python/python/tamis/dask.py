"""Filters on Dask: built by workers, asked by workers.

    from tamis import dask

    seen = dask.build(crawl, "url", rate=0.001)            # a tamis.Filter
    fresh = dask.semi_filter(orders, "customer", seen)     # rows whose key may be in

The collections are Dask DataFrames. Nulls are no keys.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from . import _folder, _parts, _tamis
from ._folder import Parts
from ._tamis import Filter


def build(
    df: Any,
    column: str | Sequence[str],
    rate: float = 0.01,
    keys: int | None = None,
    *,
    kind: str = _parts.KIND,
    seed: int = 0,
) -> Filter:
    """A filter of the keys in a column, or of the tuples in several.

    Every partition becomes a part, and parts are merged as a tree, all on workers. `keys` is the
    number of keys to plan for; without it they are counted first.
    """
    from dask import delayed

    names = _parts.columns_of(column)
    options = _parts.options_of(rate, kind, seed)
    rows = df[names].dropna()
    planned = len(rows) if keys is None else keys
    part = delayed(_part, pure=False)
    merge = delayed(_merge, pure=False)
    parts = [part(frame, planned, options) for frame in rows.to_delayed()]
    while len(parts) > 1:
        groups = range(0, len(parts), _parts.FAN_IN)
        parts = [merge(parts[start : start + _parts.FAN_IN]) for start in groups]
    (whole,) = parts
    filter: Filter = whole.compute()
    return filter


def build_parts(
    df: Any,
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
    from dask import compute, delayed

    names = _parts.columns_of(column)
    options = _folder.options_of(folder, parts, rate, kind, seed)
    cut = delayed(_cut, nout=parts, pure=False)
    write = delayed(_folder.write, pure=False)
    pieces = [cut(frame, parts, seed) for frame in df[names].dropna().to_delayed()]
    lines = (write([piece[part] for piece in pieces], folder, part, options) for part in range(parts))
    entries = dict(enumerate(compute(*lines)))
    return _folder.finish(folder, entries, parts, options)


def contains(df: Any, column: str | Sequence[str], filter: Filter | Parts) -> Any:
    """A Dask Series of bool: whether the key of each row may be in `filter`."""
    names = _parts.columns_of(column)
    return df.map_partitions(_answers, names, filter, meta=("contains", "bool"))


def semi_filter(df: Any, column: str | Sequence[str], filter: Filter | Parts) -> Any:
    """The rows of `df` whose key may be in `filter`: all that match, and of the rest the share
    `filter.rate`."""
    names = _parts.columns_of(column)
    return df.map_partitions(_matching, names, filter, meta=df._meta)


def dedup(
    df: Any, columns: str | Sequence[str], rate: float = 1e-6, keys: int | None = None
) -> Any:
    """Each key of `df` once. Rows of one key meet in a partition, and the first that comes stays.

    A row of a new key is dropped with probability `rate`. Rows with a null among `columns` all
    stay, for a null is no key.
    """
    names = _parts.columns_of(columns)
    options = _parts.options_of(rate, "auto", 0)
    planned = len(df) if keys is None else keys
    share = _parts.share_of(planned, df.npartitions)
    shuffled = df.shuffle(on=names)
    return shuffled.map_partitions(_first, names, share, options, meta=df._meta)


def _part(frame: Any, keys: int, options: dict[str, Any]) -> Filter:
    return _parts.part([_keys(frame, list(frame.columns))], keys, options)


def _cut(frame: Any, parts: int, seed: int) -> list[bytes]:
    return _tamis._cut(_keys(frame, list(frame.columns)), parts, seed)


def _merge(parts: list[Filter]) -> Filter:
    # A copy, because Dask may use a result again.
    return _parts.merged([parts[0].copy(), *parts[1:]])


def _keys(frame: Any, names: list[str]) -> Any:
    """The keys of a pandas frame: a column, or an Arrow table of several."""
    if len(names) == 1:
        return frame[names[0]]
    import pyarrow

    return pyarrow.Table.from_pandas(frame[names], preserve_index=False)


def _answers(frame: Any, names: list[str], filter: Filter | Parts) -> Any:
    import pandas

    answers = filter.contains(_keys(frame, names), out="numpy")
    return pandas.Series(answers, index=frame.index, name="contains")


def _matching(frame: Any, names: list[str], filter: Filter | Parts) -> Any:
    return frame[filter.contains(_keys(frame, names), out="numpy")]


def _first(frame: Any, names: list[str], keys: int, options: dict[str, Any]) -> Any:
    new = Filter(keys, **options).add_new(_keys(frame, names), out="numpy")
    return frame[new | frame[names].isna().any(axis=1).to_numpy()]
