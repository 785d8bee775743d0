"""Sets that no machine holds as one filter: a folder with a filter for each part of the keys."""

from __future__ import annotations

import json
import os
import pathlib
from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import Any

from . import _tamis
from ._tamis import FormatError, MismatchError

_INDEX = "index.json"
_FORMAT = "tamis parts 1"
_HASH = "xxh3"

Options = Mapping[str, Any]
"""How every part is built: `rate`, `kind` and `seed`."""


class Parts:
    """A set in many filters, which answers as one.

    Every key belongs to one part, by a hash of its digest, and only that part is asked. So the
    rate is that of one filter, and a part is as small as its share of the keys. Parts are files of
    a folder, mapped as `tamis.open` does it, so that memory is taken only for what is asked.
    Nothing can be added.

    `tamis.spark`, `tamis.dask` and `tamis.ray` build such folders with `build_parts`. Opening one
    fails if a part is missing, or is another than the index of the folder says.

    Args:
        folder: where the parts and their index are.
        mapped: False reads all parts and checks every byte.

    Examples:
        >>> import os, tempfile
        >>> folder = os.path.join(tempfile.mkdtemp(), "seen")
        >>> seen = tamis.Parts.build(range(10_000), folder, parts=8, rate=0.001)
        >>> 7 in seen, len(seen)
        (True, 10000)
        >>> with tamis.Parts(folder) as again:
        ...     again.contains([7, 8], out="list")
        [True, True]
    """

    def __init__(self, folder: str | os.PathLike[str], *, mapped: bool = True) -> None:
        self._folder = pathlib.Path(folder).absolute()
        self._mapped = mapped
        self._index = _read(self._folder / _INDEX)
        self._parts = [
            _open(self._folder / entry["file"], entry, mapped) for entry in self._index["parts"]
        ]

    @classmethod
    def build(
        cls,
        keys: Any,
        folder: str | os.PathLike[str],
        parts: int,
        rate: float = 0.01,
        *,
        kind: str = "auto",
        seed: int = 0,
    ) -> Parts:
        """Builds a folder on this machine. `keys` is what `Filter.update` takes; they are kept in
        8 bytes each meanwhile.

        Examples:
            >>> import os, tempfile
            >>> folder = os.path.join(tempfile.mkdtemp(), "seen")
            >>> "ada" in tamis.Parts.build(["ada", "bob"], folder, parts=2)
            True
        """
        options = options_of(folder, parts, rate, kind, seed)
        cut = _tamis._cut(keys, parts, seed)
        entries = {part: write([cut[part]], folder, part, options) for part in range(parts)}
        return finish(folder, entries, parts, options)

    def __contains__(self, key: Any) -> bool:
        return key in self._parts[self.part_of(key)]

    def part_of(self, key: Any) -> int:
        """The number of the part that `key` belongs to, for programs that ask it elsewhere.

        Examples:
            >>> import os, tempfile
            >>> folder = os.path.join(tempfile.mkdtemp(), "seen")
            >>> tamis.Parts.build(["ada"], folder, parts=4).part_of("ada")
            0
        """
        return _tamis._part_of(self._first(), key, len(self._parts))

    def contains(self, keys: Any, *, out: str | None = None, progress: bool = False) -> Any:
        """Whether each key of a batch may be in, as `Filter.contains`.

        Examples:
            >>> import os, tempfile
            >>> folder = os.path.join(tempfile.mkdtemp(), "seen")
            >>> seen = tamis.Parts.build(["ada", "bob"], folder, parts=2, rate=1e-6)
            >>> seen.contains(["ada", "eve"], out="list")
            [True, False]
        """
        self._first()
        return _tamis._contains(self._parts, keys, out, progress)

    def _first(self) -> _tamis.Filter:
        if not self._parts:
            raise _tamis.Error("the parts are closed; open them again")
        return self._parts[0]

    def __len__(self) -> int:
        return sum(entry["keys"] for entry in self._index["parts"])

    @property
    def rate(self) -> float:
        """The share of absent keys that are answered yes.

        Examples:
            >>> import os, tempfile
            >>> folder = os.path.join(tempfile.mkdtemp(), "seen")
            >>> tamis.Parts.build(range(1000), folder, parts=2, rate=0.01).rate < 0.011
            True
        """
        # An absent key falls into every part alike.
        entries = self._index["parts"]
        return float(sum(entry["rate"] for entry in entries) / len(entries))

    def info(self) -> dict[str, Any]:
        """What the folder holds: a dict, with one for each part.

        Examples:
            >>> import os, tempfile
            >>> folder = os.path.join(tempfile.mkdtemp(), "seen")
            >>> info = tamis.Parts.build(range(1000), folder, parts=2).info()
            >>> info["keys"], len(info["parts"])
            (1000, 2)
        """
        bytes = sum(entry["bytes"] for entry in self._index["parts"])
        return {
            "keys": len(self),
            "predicted_rate": self.rate,
            "file_bytes": bytes,
            "wire_bits_per_key": bytes * 8 / max(1, len(self)),
            **self._index,
        }

    def close(self) -> None:
        """Lets the files go. Whatever is asked later is an error.

        Examples:
            >>> import os, tempfile
            >>> folder = os.path.join(tempfile.mkdtemp(), "seen")
            >>> tamis.Parts.build(["ada"], folder, parts=2).close()
        """
        parts, self._parts = self._parts, []
        for part in parts:
            part.close()

    def __enter__(self) -> Parts:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __reduce__(self) -> tuple[Any, ...]:
        # The folder, not its content: who reads it sees the same files.
        return _reopen, (str(self._folder), self._mapped)

    def __repr__(self) -> str:
        return f"<tamis.Parts: {len(self._index['parts'])} parts, {len(self)} keys>"


def options_of(
    folder: str | os.PathLike[str], parts: int, rate: float, kind: str, seed: int
) -> dict[str, Any]:
    """How every part is built. What is wrong with it is said here, not by a worker."""
    if (pathlib.Path(folder) / _INDEX).exists():
        raise FileExistsError(f"{folder}: there are parts already; choose another folder")
    options: dict[str, Any] = {"rate": rate, "kind": kind, "seed": seed}
    _tamis._cut([], parts, seed)
    _tamis._of_digests([], **options)
    os.makedirs(folder, exist_ok=True)
    return options


def write(
    pieces: Iterable[bytes], folder: str | os.PathLike[str], part: int, options: Options
) -> dict[str, Any]:
    """Makes the file of one part, and returns its line of the index. Done twice, by a worker whose
    first answer was lost, it makes the same file."""
    filter = _tamis._of_digests(pieces, **options)
    name = f"part-{part:05}.tamis"
    path = pathlib.Path(folder) / name
    filter.save(path)
    return {
        "file": name,
        "keys": len(filter),
        "kind": filter.kind,
        "rate": filter.rate,
        "bytes": path.stat().st_size,
        "content_id": filter.content_id(),
        "header": _header(path),
    }


def finish(
    folder: str | os.PathLike[str], entries: Mapping[int, Any], parts: int, options: Options
) -> Parts:
    """Writes the index, the last file of a folder. Parts without keys are made here."""
    every = [entries.get(part) or write([], folder, part, options) for part in range(parts)]
    index = {"format": _FORMAT, "hash": _HASH, "seed": options["seed"], "parts": every}
    path = pathlib.Path(folder) / _INDEX
    new = path.with_name(f".{_INDEX}.{os.getpid()}")
    new.write_text(json.dumps(index, indent=1) + "\n")
    new.replace(path)
    return Parts(folder)


def _reopen(folder: str, mapped: bool) -> Parts:
    return Parts(folder, mapped=mapped)


def _read(path: pathlib.Path) -> dict[str, Any]:
    try:
        index = json.loads(path.read_text())
        known = index["format"] == _FORMAT and index["hash"] == _HASH
        for entry in index["parts"]:
            name, header = entry["file"], entry["header"]
            known &= isinstance(header, str) and pathlib.PurePath(name).name == name
            known &= all(isinstance(entry[field], int) for field in ("keys", "bytes"))
            known &= isinstance(entry["rate"], float) and isinstance(entry["content_id"], str)
        known &= len(index["parts"]) > 0
    except (ValueError, KeyError, TypeError) as error:
        raise FormatError(f"{path}: this is no index of parts ({error!r})") from None
    if not known:
        raise FormatError(f"{path}: this is no index of parts that this version reads")
    return dict(index)


def _open(path: pathlib.Path, entry: Mapping[str, Any], mapped: bool) -> _tamis.Filter:
    filter = _tamis.open(path, mapped=mapped)
    if _header(path) != entry["header"]:
        raise MismatchError(f"{path}: this is not the part that the index names")
    return filter


def _header(path: pathlib.Path) -> str:
    """The checksum of a filter's header, which has the checksums of all its content."""
    with path.open("rb") as file:
        start = file.read(16)
        file.seek(48 + 8 * start[14] + 40 * start[15])
        return file.read(8).hex()
