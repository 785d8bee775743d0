"""Bad input is an exception with words, changes nothing, and never ends the interpreter."""

import datetime
import decimal
import os
import random

import pytest

import tamis

np = pytest.importorskip("numpy")
pa = pytest.importorskip("pyarrow")


@pytest.mark.parametrize(
    "batch, words",
    [
        (np.zeros(3), "cast them first"),
        (np.zeros((3, 3), "u8"), "2 dimensions"),
        (np.zeros((), "u8"), "cannot be iterated"),
        (np.zeros(3, bool), "cast them first"),
        (np.zeros(3, "c16"), "cast them first"),
        (np.zeros(3, "i4,i4"), "cast them first"),
        (np.array(["2020-01-01"], "M8[D]"), "no key"),
        (pa.array([1.5]), "floats are no keys"),
        (pa.array([True]), "booleans are no keys"),
        (pa.array([[1]]), "nested values are no keys"),
        (pa.array([{"a": {"b": 1}}]), "nested values are no keys"),
        (pa.array([datetime.date(2020, 1, 1)]), "dates, times"),
        (pa.array([decimal.Decimal("1.5")]), "decimals are no keys"),
        (pa.array([{"a": [1]}]), "nested values"),
        (pa.schema({"a": pa.int8()}), "no key|iterated|batch"),
        ("text", "one key"),
        (b"bytes", "one key"),
        (bytearray(b"bytes"), "one key"),
        (memoryview(b"bytes"), "one key"),
        (5, "cannot be iterated"),
        (None, "cannot be iterated"),
        ({"a": 1}, "its keys or its values"),
        ([1.5], "float is no key"),
        ([True], "bool is no key"),
        ([None], "NoneType is no key"),
        ([["nested"]], "list is no key"),
        (["a", object()], "object is no key"),
        ([("a",)], "2 to 4 parts"),
        ([("a", ("b", "c"))], "tuple in a tuple"),
        ([np.float32(1)], "holds bytes|no key"),
        ([np.bool_(True)], "holds bytes|no key"),
        ([np.zeros(3)], "holds bytes"),
    ],
    ids=lambda value: str(value)[:30].replace("\n", " ") if isinstance(value, str) else type(value).__name__,
)
def test_batches(batch, words):
    seen = tamis.Filter(["ada"], ops=["remove", "count"])
    before = seen.to_bytes()
    for use in (seen.update, seen.contains, seen.remove_many, seen.add_new):
        with pytest.raises(TypeError, match=words):
            use(batch)
    assert seen.to_bytes() == before


def test_keys():
    seen = tamis.Filter(["ada"])
    before = seen.to_bytes()
    for key, error in [
        (1.5, TypeError), (None, TypeError), (True, TypeError), (2**64, OverflowError),
        (-(2**63) - 1, OverflowError), ("\ud800", UnicodeEncodeError), ([], TypeError),
        (memoryview(b"abcd")[::2], TypeError), (np.zeros(2), TypeError), ((), TypeError),
        (("a",) * 5, TypeError), (object(), TypeError), (10**100, OverflowError),
    ]:
        with pytest.raises(error):
            seen.add(key)
        with pytest.raises(error):
            key in seen
        with pytest.raises((error, TypeError)):
            seen.update([1, key])
    assert seen.to_bytes() == before


class Strange:
    """Hooks that lie or raise."""

    def __init__(self, chance):
        self.chance = chance

    def __index__(self):
        return self.chance.choice([5, 2**70])

    def __len__(self):
        return 2**62

    def __iter__(self):
        yield from self.chance.sample(["a", 1, None, b"c", 2.5], 2)
        if self.chance.random() < 0.5:
            raise OSError("gone")

    def __arrow_c_array__(self, requested_schema=None):
        return self.chance.choice(
            [None, (1, 2), 5, pa.array(["x"]).__arrow_c_array__()[::-1],
             pa.array(["x"]).__arrow_c_array__(), AttributeError]
        )


class Streams(Strange):
    def __arrow_c_stream__(self, requested_schema=None):
        used = pa.table({"a": [1]}).__arrow_c_stream__()
        if self.chance.random() < 0.5:
            tamis.Filter(keys=5).update(Once(used))
        return self.chance.choice([used, None, 7, pa.array([1]).__arrow_c_array__()[0]])


class Once:
    def __init__(self, capsule):
        self.capsule = capsule

    def __arrow_c_stream__(self, requested_schema=None):
        return self.capsule


def test_a_hundred_thousand_calls(tmp_path, golden, monkeypatch):
    """Random methods with random arguments: an exception, or an answer, and keys stay in."""
    chance = random.Random(19)
    monkeypatch.chdir(tmp_path)  # `save` takes any name
    calls = int(os.environ.get("TAMIS_FUZZED", "100000"))
    path = tmp_path / "f.tamis"
    tamis.Filter(["kept"], ops=["remove"]).save(path)
    forged = (golden / "blocked-rank.tamis").read_bytes()
    values = [
        lambda: chance.choice(["a", b"b", 3, -1, 2**64, 2.5, None, True, (), ("a", 1), "\ud800"]),
        lambda: [chance.choice(["a", b"b", 3, None, 2.5]) for _ in range(chance.randrange(4))],
        lambda: np.arange(chance.randrange(50)).astype(chance.choice(["u8", "i2", "f4", "S3", "?"])),
        lambda: np.zeros((2, 2), "u4")[:, 0][::-1],
        lambda: pa.array(chance.choice([["x", None], [1, 2], [[1]], [1.5], [None]])),
        lambda: pa.array(["x", None, "y"] * 5)[chance.randrange(15):].dictionary_encode(),
        lambda: pa.table({"a": ["x"], "b": [1]}),
        lambda: Strange(chance),
        lambda: Streams(chance),
        lambda: chance.choice(others).copy(),
        lambda: flipped(chance, forged),
        lambda: forged[: chance.randrange(len(forged))],
        lambda: str(path),
        lambda: chance.choice([0, 1, 2**40, -5]),
    ]
    # Planned once, and copied: some kinds take 30 ms to plan.
    others = [
        tamis.Filter(keys, seed=seed, kind=kind)
        for keys in (5, ["p", "q"]) for seed in (0, 1)
        for kind in ("bloom", "blocked-rank", "rank-map", "auto")
    ]
    kinds = ["bloom", "counting", "blocked", "rank-map", "blocked-rank", "dleft", "balanced-mht"]
    planned = [tamis.Filter(keys=50, kind=kind) for kind in kinds]
    names = [
        "add", "update", "add_new", "contains", "remove", "remove_many", "count", "values",
        "merge", "copy", "grow", "shrink", "info", "content_id", "to_bytes", "from_bytes",
        "pack", "diff", "patch", "__contains__", "__len__", "__or__", "__eq__", "__repr__",
        "__reduce_ex__", "__deepcopy__", "close", "__exit__", "__enter__", "clear", "save",
    ]
    expected = (TypeError, ValueError, OverflowError, KeyError, MemoryError, OSError,
                AttributeError, RuntimeError, BufferError)
    kept = fresh(chance, planned, path)
    raised = 0
    for _ in range(calls):
        name = chance.choice(names)
        # Removing what was not added takes keys away, and these three do it in other words.
        if name in ("remove", "remove_many", "clear", "close", "__exit__", "patch", "save"):
            target = fresh(chance, planned, path)
        else:
            target = kept
        arguments = [] if chance.random() < 0.2 else [chance.choice(values)() for _ in range(chance.choice([1, 1, 1, 2]))]
        if name == "save":
            arguments = [tmp_path / "out"] if chance.random() < 0.5 else arguments[:1]
        if name in ("grow", "shrink") and chance.random() < 0.95:
            name = "info"  # a filter that doubles every time would soon fill the memory
        try:
            getattr(target, name)(*arguments)
        except expected:
            raised += 1
        if chance.random() < 0.002 or len(kept) > 3000:
            assert "kept" in kept
            kept = fresh(chance, planned, path)
    assert "kept" in kept and raised > calls // 10


def flipped(chance, good):
    """The bytes with a few of their lowest bits changed."""
    bad = bytearray(good)
    for _ in range(chance.randrange(8)):
        bad[chance.randrange(len(bad))] ^= 1
    return bytes(bad)


def fresh(chance, planned, path):
    if chance.random() < 0.1:
        return tamis.open(path)
    filter = chance.choice(planned).copy()
    filter.add("kept")
    return filter


def test_forged_files_that_are_mapped(golden, tmp_path):
    """Wrong answers at worst; a change checks the content first."""
    chance = random.Random(3)
    refused = 0
    for path in sorted(golden.glob("*.tamis")):
        good = path.read_bytes()
        for _ in range(20):
            bad = bytearray(good)
            bad[chance.randrange(len(bad))] ^= 1 << chance.randrange(8)
            forged = tmp_path / "forged"
            forged.write_bytes(bad)
            try:
                filter = tamis.open(forged)
            except tamis.FormatError:
                refused += 1
                continue
            filter.contains(range(100))
            for use in (lambda: filter.add("a"), filter.to_bytes, filter.copy, filter.content_id,
                        lambda: filter.copy().update(range(50)), filter.grow):
                try:
                    use()
                except tamis.Error:
                    refused += 1
            filter.close()
            forged.unlink()
    assert refused > 100
