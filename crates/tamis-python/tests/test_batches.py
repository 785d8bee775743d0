"""Batches: every source and type gives the keys that the same values give one by one."""

import array

import pytest

import tamis

np = pytest.importorskip("numpy")
pa = pytest.importorskip("pyarrow")

TEXTS = ["", "a", "twelve bytes", "thirteen bytes", "é", "日本語", "x" * 300, "a\0b"] + [
    f"https://example.org/{number}" for number in range(3000)
]
NUMBERS = [0, 1, 127, -1, -128, 5] * 400


def of(keys):
    """A filter of keys that were added one by one."""
    one = tamis.Filter(keys=5000, kind="rank-counting", rate=1e-6)
    for key in keys:
        one.add(key)
    return one


def same(batch, keys):
    """A batch gives the filter that its keys give, and is found in it."""
    expected = of(keys)
    many = tamis.Filter(keys=5000, kind="rank-counting", rate=1e-6)
    many.update(batch() if callable(batch) else batch)
    assert many.to_bytes() == expected.to_bytes()
    answers = expected.contains(batch() if callable(batch) else batch)
    assert answers.dtype == bool and len(answers) == len(keys) and answers.all()
    none = tamis.Filter(keys=5000, kind="bloom", rate=1e-6)
    assert not none.contains(batch() if callable(batch) else batch).any()


@pytest.mark.parametrize(
    "type",
    ["string", "large_string", "string_view", "binary", "large_binary", "binary_view"],
)
def test_arrow_strings(type):
    plain = pa.array(TEXTS)
    column = plain.cast(pa.binary()) if "binary" in type else plain
    column = column.cast(getattr(pa, type)())
    same(column, TEXTS)
    same(column[5:700], TEXTS[5:700])
    same(pa.chunked_array([column[:10], column[10:11], column[11:11], column[11:]]), TEXTS)
    same(pa.table({"only": column}), TEXTS)
    same(pa.table({"only": column}).slice(7, 100), TEXTS[7:107])
    same(pa.record_batch({"only": column[3:50]}), TEXTS[3:50])


def test_arrow_dictionaries():
    column = pa.array(TEXTS + TEXTS[:500]).dictionary_encode()
    same(column, TEXTS + TEXTS[:500])
    same(column[3000:3300], (TEXTS + TEXTS[:500])[3000:3300])
    same(pa.array([5, 6, 5]).dictionary_encode(), [5, 6, 5])
    bad = pa.DictionaryArray.from_arrays(pa.array([0, 9]), pa.array(["a"]), safe=False)
    with pytest.raises(TypeError, match="row 1 points outside"):
        of([]).update(bad)


@pytest.mark.parametrize("type", ["int8", "int16", "int32", "int64"])
def test_arrow_integers_of_every_width_are_one_key(type):
    same(pa.array(NUMBERS, getattr(pa, type)()), NUMBERS)
    same(np.array(NUMBERS, type), NUMBERS)
    same(np.array(NUMBERS, type)[::-3], NUMBERS[::-3])
    same(np.array(NUMBERS, np.dtype(type).newbyteorder(">")), NUMBERS)


@pytest.mark.parametrize("type", ["uint8", "uint16", "uint32", "uint64"])
def test_unsigned_integers_too(type):
    numbers = [number & 127 for number in NUMBERS] + [200]
    same(pa.array(numbers, getattr(pa, type)()), numbers)
    same(np.array(numbers, type), numbers)
    same(np.array(numbers, type).reshape(-1, 1)[:, 0], numbers)


def test_wide_integers():
    wide = [2**64 - 1, 2**63, 2**63 - 1]
    same(np.array(wide, "u8"), wide)
    same(pa.array(wide, pa.uint64()), wide)
    # One rule: eight bytes. The bytes of -1 are those of 2^64 - 1.
    assert -1 in of([2**64 - 1])


def test_fixed_bytes():
    keys = [b"ab", b"", b"abcd", b"a\0c"]
    same(np.array(keys, "S4"), keys)
    same(np.array(keys, "S9")[::2], keys[::2])
    raw = [b"ab\0\0", b"\0\0\0\0"]
    same(pa.array(raw, pa.binary(4)), raw)


def test_other_buffers_and_iterables():
    same(array.array("q", NUMBERS), NUMBERS)
    same(memoryview(array.array("H", [1, 2, 3])), [1, 2, 3])
    same(np.array(TEXTS), [text.rstrip("\0") for text in TEXTS])
    same(np.array(TEXTS, object), TEXTS)
    same(tuple(TEXTS), TEXTS)
    same(dict.fromkeys(TEXTS).keys(), TEXTS)
    same(lambda: (text for text in TEXTS), TEXTS)
    same(range(1000), list(range(1000)))
    same([np.int32(5), np.uint8(7), np.str_("a"), np.bytes_(b"b")], [5, 7, "a", "b"])
    assert len(of([]).contains([])) == 0
    assert len(of([]).contains(pa.array([], pa.string()))) == 0


def test_single_keys_spell_alike():
    one = of(["a", 5, ("ab", "c"), (1, b"x", "y")])
    for key in ["a", b"a", bytearray(b"a"), memoryview(b"a"), np.bytes_(b"a"), 5, np.int8(5),
                (5).to_bytes(8, "little"), ("ab", "c"), (b"ab", b"c"), (1, "x", "y")]:
        assert key in one, key
    assert ("a", "bc") not in one and "abc" not in one


def test_tables_of_several_columns_are_tuples():
    names, numbers = ["ab", "a", "c"], [1, 2, 3]
    table = pa.table({"name": names, "number": numbers})
    same(table, list(zip(names, numbers)))
    same(pa.StructArray.from_arrays([pa.array(names), pa.array(numbers)], ["a", "b"])[1:],
         list(zip(names, numbers))[1:])
    with pytest.raises(TypeError, match="at most 4 columns, not 5"):
        of([]).update(pa.table({str(n): numbers for n in range(5)}))


@pytest.mark.parametrize("type", [pa.string(), pa.large_string(), pa.string_view(), pa.binary(),
                                  pa.dictionary(pa.int8(), pa.string())])
def test_nulls_are_no_keys(type):
    column = pa.array(["a", None, "b", None], pa.string())
    column = column.dictionary_encode() if pa.types.is_dictionary(type) else column.cast(type)
    seen = tamis.Filter(keys=10, rate=1e-6)
    seen.update(column)
    assert len(seen) == 2 and "" not in seen
    assert seen.contains(column).tolist() == [True, False, True, False]
    assert seen.contains(column[1:]).tolist() == [False, True, False]
    assert seen.add_new(pa.array([None, "c", "c"])).tolist() == [False, True, False]
    assert tamis.Filter(column).capacity == 2


def test_nulls_elsewhere():
    assert len(tamis.Filter(pa.nulls(5))) == 0
    table = pa.table({"a": ["x", None, "y"], "b": [1, 2, None]})
    seen = tamis.Filter(table)
    assert len(seen) == 1 and ("x", 1) in seen
    values = pa.DictionaryArray.from_arrays(pa.array([0, 1, None]), pa.array(["a", None]))
    assert tamis.Filter(["a"], rate=1e-6).contains(values).tolist() == [True, False, False]
    ports = tamis.Filter(keys=10, rate=1e-6, ops=["value=8"])
    ports.update(pa.array(["a", None, "b"]), values=[1, 2, 3])
    assert (ports.values("a"), ports.values("b"), len(ports)) == ([1], [3], 2)
    with pytest.raises(TypeError, match="NoneType is no key"):
        seen.update(["a", None])


def test_answers():
    seen = tamis.Filter(["a"], rate=1e-6)
    assert isinstance(seen.contains(["a", "b"]), np.ndarray)
    assert seen.contains(["a", "b"], out="list") == [True, False]
    assert seen.contains(["a", "b"], out="arrow").equals(pa.array([True, False]))
    answers = seen.contains(["a", "b"])
    answers ^= True  # they belong to the caller
    with pytest.raises(ValueError, match="numpy, arrow, list"):
        seen.contains(["a"], out="paper")


def test_without_numpy(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "numpy", None)
    assert tamis.Filter(["a"], rate=1e-6).contains(["a", "b"]) == [True, False]


def test_polars():
    pl = pytest.importorskip("polars")
    same(pl.Series(TEXTS), TEXTS)
    same(pl.Series(TEXTS, dtype=pl.Categorical), TEXTS)
    same(pl.DataFrame({"u": TEXTS}), TEXTS)
    same(pl.concat([pl.Series([1, 2]), pl.Series([3])], rechunk=False), [1, 2, 3])
    frame = pl.DataFrame({"u": ["a", "b", None]})
    assert frame.filter(tamis.Filter(["a"], rate=1e-6).contains(frame["u"])).height == 1


def test_pandas():
    pd = pytest.importorskip("pandas")
    same(pd.Series(TEXTS), TEXTS)
    same(pd.Series(TEXTS, dtype=object), TEXTS)
    same(pd.Series(TEXTS).astype("category"), TEXTS)
    same(pd.Series(NUMBERS, dtype="int16"), NUMBERS)
    same(pd.Index(TEXTS), TEXTS)
    frame = pd.DataFrame({"u": ["a", "b", None]})
    assert len(frame[tamis.Filter(["a"], rate=1e-6).contains(frame["u"])]) == 1


def test_duckdb():
    duckdb = pytest.importorskip("duckdb")
    numbers = list(range(5000))
    same(lambda: duckdb.sql("select range as n from range(5000)"), numbers)
    same(lambda: duckdb.sql("select 'key ' || range as k from range(3000)"),
         [f"key {n}" for n in range(3000)])


def test_streams_larger_than_memory_come_piece_by_piece():
    batches = (pa.record_batch({"n": pa.array(range(n, n + 100))}) for n in range(0, 1000, 100))
    schema = pa.schema({"n": pa.int64()})
    reader = pa.RecordBatchReader.from_batches(schema, batches)
    same_filter = of([])
    same_filter.update(reader)
    assert same_filter.to_bytes() == of(range(1000)).to_bytes()
    with pytest.raises((TypeError, ValueError, OSError)):
        same_filter.update(pa.RecordBatchReader.from_batches(schema, broken()))


def broken():
    yield pa.record_batch({"n": pa.array([1, 2])})
    raise ValueError("the disk is gone")
