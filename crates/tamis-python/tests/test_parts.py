"""Folders of parts: sets larger than one machine."""

import json
import pickle
import shutil

import pytest

import tamis

KEYS = 20_000


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    folder = tmp_path_factory.mktemp("parts") / "folder"
    tamis.Parts.build((f"key {n}" for n in range(KEYS)), folder, parts=8, rate=0.01)
    return folder


@pytest.fixture
def copy(built, tmp_path):
    """A copy that may be damaged."""
    shutil.copytree(built, tmp_path / "copy")
    return tmp_path / "copy"


def absent(count):
    return [f"absent {n}" for n in range(count)]


def test_every_key_is_found_and_absent_ones_at_the_rate(built):
    parts = tamis.Parts(built)
    assert len(parts) == KEYS
    keys = [f"key {n}" for n in range(KEYS)]
    assert all(parts.contains(keys, out="list"))
    assert all(key in parts for key in keys[::100])
    asked = absent(100_000)
    answers = parts.contains(asked, out="list")
    assert answers[:500] == [key in parts for key in asked[:500]]
    # Six deviations, with the spread between filters of this size beside them.
    expected = parts.rate * len(asked)
    assert parts.rate <= 0.01
    assert abs(sum(answers) - expected) < 6 * expected**0.5 + 0.05 * expected


def test_parts_are_ordinary_filters_of_about_equal_size(built):
    """Each has the keys that `part_of` says, whatever reads it, and the memory of its share."""
    parts = tamis.Parts(built)
    files = sorted(built.glob("part-*.tamis"))
    filters = [tamis.open(file) for file in files]
    for n in range(0, KEYS, 10):
        key = f"key {n}"
        assert key in filters[parts.part_of(key)]
    for file, filter in zip(files, filters):
        assert abs(len(filter) - KEYS / 8) < 6 * (KEYS / 8) ** 0.5
        alone = tamis.Filter(range(len(filter)), rate=0.01, kind=filter.kind)
        assert file.stat().st_size < 1.05 * len(alone.to_bytes())
        assert filter.rate < 0.0105


def test_the_rule_is_frozen(tmp_path):
    """Folders that were built once are asked by every later version."""
    parts = tamis.Parts.build([], tmp_path / "parts", parts=4)
    assert [parts.part_of(n) for n in range(6)] == [1, 3, 3, 0, 1, 2]
    assert [parts.part_of(f"key {n}") for n in range(8)] == [0, 0, 0, 3, 2, 0, 0, 3]


@pytest.mark.parametrize("kind", ["bloom", "blocked", "rank-indexed", "blocked-rank", "ribbon"])
def test_order_and_repeats_change_nothing(kind, tmp_path):
    keys = list(range(3000))
    ways = [keys, keys[::-1], keys + keys[:500]]
    ids = set()
    for number, way in enumerate(ways):
        parts = tamis.Parts.build(way, tmp_path / str(number), parts=3, kind=kind, seed=9)
        assert len(parts) == 3000 and all(parts.contains(keys, out="list"))
        ids.add(tuple(part["content_id"] for part in parts.info()["parts"]))
    assert len(ids) == 1


def test_nulls_tuples_and_other_batches(tmp_path):
    pa = pytest.importorskip("pyarrow")
    parts = tamis.Parts.build(pa.array(["a", None, "b"]), tmp_path / "a", parts=5, rate=1e-6)
    assert len(parts) == 2
    assert parts.contains(pa.array(["a", None, "c"]), out="arrow").to_pylist() == [True, False, False]
    pairs = tamis.Parts.build([("a", 1), ("b", 2)], tmp_path / "b", parts=5, rate=1e-6)
    assert ("a", 1) in pairs and ("a", 2) not in pairs
    empty = tamis.Parts.build([], tmp_path / "c", parts=2)
    assert len(empty) == 0 and "a" not in empty


def test_pickles_name_the_folder(built):
    parts = tamis.Parts(built)
    data = pickle.dumps(parts)
    assert len(data) < 500 and "key 5" in pickle.loads(data)


def test_what_is_wrong_with_a_folder(copy, tmp_path):
    part = copy / "part-00003.tamis"
    good = part.read_bytes()
    part.unlink()
    with pytest.raises(FileNotFoundError, match="part-00003"):
        tamis.Parts(copy)
    # Another content: one key more.
    shutil.copy(copy / "part-00004.tamis", part)
    with pytest.raises(tamis.MismatchError, match="not the part"):
        tamis.Parts(copy)
    part.write_bytes(good[:40])
    with pytest.raises(tamis.FormatError, match="part-00003"):
        tamis.Parts(copy)
    # One bit of the content: what is mapped is not read, what is read is checked.
    part.write_bytes(good[:-1] + bytes([good[-1] ^ 1]))
    with pytest.raises(tamis.FormatError):
        tamis.Parts(copy, mapped=False)
    part.write_bytes(good)
    assert "key 5" in tamis.Parts(copy)


@pytest.mark.parametrize("change", [
    lambda index: index.update(format="tamis parts 2"),
    lambda index: index.update(hash="sip13"),
    lambda index: index.pop("parts"),
    lambda index: index.update(parts=[]),
    lambda index: index.update(parts=7),
    lambda index: index["parts"][1].pop("header"),
    lambda index: index["parts"][1].update(file="../copy/part-00001.tamis"),
    lambda index: index["parts"][1].update(keys="many"),
])
def test_an_index_that_is_none(copy, change):
    index = json.loads((copy / "index.json").read_text())
    change(index)
    (copy / "index.json").write_text(json.dumps(index))
    with pytest.raises(tamis.FormatError, match="index"):
        tamis.Parts(copy)


def test_bad_calls(built, tmp_path):
    with pytest.raises(FileExistsError, match="another folder"):
        tamis.Parts.build(["a"], built, parts=2)
    for options in [
        dict(parts=0), dict(parts=-1), dict(parts=2, rate=2.0), dict(parts=2, kind="nothing"),
        dict(parts=2, seed=-1),
    ]:
        # Which of the two a negative number is depends on the interpreter.
        with pytest.raises((ValueError, OverflowError)):
            tamis.Parts.build(["a"], tmp_path / "none", **options)
        assert not (tmp_path / "none").exists()
    with pytest.raises(TypeError, match="float is no key"):
        tamis.Parts.build([1.5], tmp_path / "none", parts=2)
    with tamis.Parts(built) as parts:
        pass
    for use in (lambda: "a" in parts, lambda: parts.contains(["a"]), lambda: parts.part_of("a")):
        with pytest.raises(tamis.Error, match="closed"):
            use()
    with pytest.raises(FileNotFoundError):
        tamis.Parts(tmp_path / "nowhere")
