"""Filters on Spark: built by executors, asked by executors.

    from tamis import spark

    seen = spark.build(crawl, "url", rate=0.001)           # a tamis.Filter
    fresh = spark.semi_filter(orders, "customer", seen)    # rows whose key may be in
    spark.dedup(pages, ["host", "path"])                   # each key once

Executors need this package, pyarrow and pandas. Nulls are no keys.
"""

from __future__ import annotations

import itertools
import json
import math
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from . import _folder, _parts, _tamis
from ._folder import Parts
from ._tamis import Filter, open

_PIECE = 4 << 20
"""Parts travel in pieces of this many bytes: a row of Spark that is larger fills its heap."""

_SCHEMA = "part int, piece int, data binary"


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

    Every partition becomes a part on its executor. Parts are merged there as a tree, and the
    driver gets the last one. `keys` is the number of keys to plan for; without it they are
    counted first.
    """
    from pyspark.sql import functions

    names = _parts.columns_of(column)
    options = _parts.options_of(rate, kind, seed)
    rows = df.select(*names).dropna()
    planned = rows.count() if keys is None else keys
    parts = rows.mapInArrow(_build_part(planned, options), _SCHEMA)
    count = _partitions(rows)
    while count > 1:
        count = math.ceil(count / _parts.FAN_IN)
        together = parts.repartition(count, functions.col("part") % count)
        parts = together.sortWithinPartitions("part", "piece").mapInArrow(_merge_parts, _SCHEMA)
    whole = _gathered(parts)
    return Filter(planned, **options) if whole is None else whole


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
    """A set larger than one machine: `parts` filters in a folder that all executors and this
    driver see.

    Executors send each other 8 bytes a key, and each builds some parts, one at a time. A key that
    comes again is taken once. The folder must hold no parts yet.
    """
    names = _parts.columns_of(column)
    options = _folder.options_of(folder, parts, rate, kind, seed)
    cut = df.select(*names).dropna().mapInArrow(_cut(parts, seed), "part int, data binary")
    together = cut.repartition(parts, "part").sortWithinPartitions("part")
    lines = together.mapInArrow(_write(folder, options), "part int, line string").collect()
    entries = {line.part: json.loads(line.line) for line in lines}
    return _folder.finish(folder, entries, parts, options)


def _gathered(parts: Any) -> Filter | None:
    """The last part, on the driver. By a file, which is read piece by piece: beside bytes in memory
    the filter would be there a third time while it is laid out."""
    with tempfile.NamedTemporaryFile(suffix=".tamis") as file:
        for number, row in enumerate(parts.toLocalIterator()):
            if row.piece != number:
                raise RuntimeError("Spark gave the pieces of a part in another order")
            file.write(row.data)
        file.flush()
        return open(file.name, mapped=False) if file.tell() else None


def contains(
    df: Any, column: str | Sequence[str], filter: Filter | Parts, name: str = "contains"
) -> Any:
    """`df` with one more column, `name`: whether the key of the row may be in `filter`."""
    from pyspark.sql.types import BooleanType, StructField, StructType

    schema = StructType([*df.schema.fields, StructField(name, BooleanType(), False)])
    return df.mapInArrow(_ask(df, column, filter, _with_answers(name)), schema)


def semi_filter(df: Any, column: str | Sequence[str], filter: Filter | Parts) -> Any:
    """The rows of `df` whose key may be in `filter`: all that match, and of the rest the share
    `filter.rate`. Before a join it keeps the others from being shuffled."""
    return df.mapInArrow(_ask(df, column, filter, _only), df.schema)


def dedup(
    df: Any, columns: str | Sequence[str], rate: float = 1e-6, keys: int | None = None
) -> Any:
    """Each key of `df` once. Rows of one key meet in a partition, and the first that comes stays.

    A row of a new key is dropped with probability `rate`. Rows with a null among `columns` all
    stay, for a null is no key.
    """
    names = _parts.columns_of(columns)
    options = _parts.options_of(rate, "auto", 0)
    shuffled = df.repartition(*names) if keys is None else df.repartition(
        max(1, math.ceil(keys / 5_000_000)), *names
    )
    planned = df.count() if keys is None else keys
    share = _parts.share_of(planned, _partitions(shuffled))

    def first(batches: Iterable[Any]) -> Iterator[Any]:
        seen = Filter(share, **options)
        for batch in batches:
            yield batch.filter(_new(seen, batch, names))

    return shuffled.mapInArrow(first, df.schema)


def _partitions(df: Any) -> int:
    return int(df.rdd.getNumPartitions())


def _new(seen: Filter, batch: Any, names: list[str]) -> Any:
    """Whether each row is the first of its key, or has none."""
    import numpy
    import pyarrow

    keys = batch.select(names)
    new = seen.add_new(keys, out="numpy")
    for column in keys.columns:
        if column.null_count:
            new |= column.is_null().to_numpy(zero_copy_only=False)
    return pyarrow.array(numpy.asarray(new))


def _pieces(part: int, filter: Filter) -> Iterator[Any]:
    """A part as rows."""
    import pyarrow

    data = memoryview(filter.to_bytes())
    for piece, start in enumerate(range(0, len(data), _PIECE)):
        columns = {
            "part": pyarrow.array([part], pyarrow.int32()),
            "piece": pyarrow.array([piece], pyarrow.int32()),
            "data": pyarrow.array([data[start : start + _PIECE]], pyarrow.binary()),
        }
        yield pyarrow.RecordBatch.from_pydict(columns)


def _build_part(keys: int, options: dict[str, Any]) -> Callable[[Iterable[Any]], Iterator[Any]]:
    def build(batches: Iterable[Any]) -> Iterator[Any]:
        from pyspark import TaskContext

        yield from _pieces(TaskContext.get().partitionId(), _parts.part(batches, keys, options))

    return build


def _merge_parts(batches: Iterable[Any]) -> Iterator[Any]:
    """One part of all that came to this partition, whose pieces come in order."""
    from pyspark import TaskContext

    whole = None
    for part in _assembled(batches):
        if whole is None:
            whole = part
        else:
            whole.merge(part)
    if whole is not None:
        yield from _pieces(TaskContext.get().partitionId(), whole)


def _assembled(batches: Iterable[Any]) -> Iterator[Filter]:
    data = bytearray()
    for batch in batches:
        for row in range(batch.num_rows):
            if batch["piece"][row].as_py() == 0 and data:
                yield Filter.from_bytes(data)
                data = bytearray()
            data += batch["data"][row].as_buffer()
    if data:
        yield Filter.from_bytes(data)


def _cut(parts: int, seed: int) -> Callable[[Iterable[Any]], Iterator[Any]]:
    """Gathers the digests of each part, so that they travel in few rows."""

    def cut(batches: Iterable[Any]) -> Iterator[Any]:
        gathered: dict[int, bytearray] = defaultdict(bytearray)
        for batch in batches:
            for part, digests in enumerate(_tamis._cut(batch, parts, seed)):
                if digests:
                    gathered[part] += digests
            if sum(map(len, gathered.values())) >= _PIECE:
                yield _rows("data", gathered)
                gathered.clear()
        yield _rows("data", gathered)

    return cut


def _write(folder: str, options: dict[str, Any]) -> Callable[[Iterable[Any]], Iterator[Any]]:
    """The rows come part by part."""

    def write(batches: Iterable[Any]) -> Iterator[Any]:
        rows = (pair for batch in batches for pair in zip(batch["part"], batch["data"]))
        for part, pairs in itertools.groupby(rows, lambda pair: pair[0].as_py()):
            pieces = (data.as_py() for _, data in pairs)
            yield _rows("line", {part: json.dumps(_folder.write(pieces, folder, part, options))})

    return write


def _rows(name: str, values: Mapping[int, Any]) -> Any:
    """A value for each part."""
    import pyarrow

    parts = pyarrow.array(values.keys(), pyarrow.int32())
    kind = pyarrow.binary() if name == "data" else pyarrow.string()
    columns = [parts, pyarrow.array(values.values(), kind)]
    return pyarrow.RecordBatch.from_arrays(columns, ["part", name])


def _ask(
    df: Any,
    column: str | Sequence[str],
    filter: Filter | Parts,
    answer: Callable[[Any, Any], Any],
) -> Callable[[Iterable[Any]], Iterator[Any]]:
    names = _parts.columns_of(column)
    shared = df.sparkSession.sparkContext.broadcast(filter)

    def ask(batches: Iterable[Any]) -> Iterator[Any]:
        for batch in batches:
            yield answer(batch, shared.value.contains(batch.select(names), out="arrow"))

    return ask


def _only(batch: Any, answers: Any) -> Any:
    return batch.filter(answers)


def _with_answers(name: str) -> Callable[[Any, Any], Any]:
    def append(batch: Any, answers: Any) -> Any:
        import pyarrow

        columns = [*batch.columns, answers]
        return pyarrow.RecordBatch.from_arrays(columns, [*batch.schema.names, name])

    return append
