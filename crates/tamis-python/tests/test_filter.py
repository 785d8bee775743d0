"""Every method of the filter, as a user calls it."""

import copy
import os
import subprocess
import sys
import weakref

import pytest

import tamis

from .conftest import BUILT_ONCE, KINDS


def test_it_feels_like_a_set():
    seen = tamis.Filter(keys=1000, rate=1e-6)
    assert not seen
    assert seen.add("apple") is True
    assert seen.add("apple") is False
    assert "apple" in seen and "pear" not in seen
    assert len(seen) == 2
    seen.update(["pear", "plum"])
    assert "plum" in seen
    seen.clear()
    assert len(seen) == 0 and "plum" not in seen
    with pytest.raises(TypeError):
        hash(seen)
    assert weakref.ref(seen)() is seen


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_keeps_its_keys_and_its_rate(kind):
    keys = [f"key {number}" for number in range(2000)]
    seen = tamis.Filter(keys, rate=0.01, kind=kind)
    assert seen.kind == kind
    assert all(seen.contains(keys, out="list"))
    wrong = sum(seen.contains((f"absent {number}" for number in range(20_000)), out="list"))
    # Binomial with 200 expected: eight standard deviations above.
    assert wrong < 320
    assert len(seen) == 2000 and seen.capacity == 2000
    assert 0 < seen.rate < 0.02
    assert seen.info()["kind"] == kind


@pytest.mark.parametrize("kind", BUILT_ONCE)
def test_kinds_that_are_built_once_need_their_keys(kind):
    with pytest.raises(tamis.UnsupportedError, match="give the keys instead"):
        tamis.Filter(keys=100, kind=kind)
    built = tamis.Filter(["apple"], kind=kind)
    with pytest.raises(tamis.UnsupportedError, match="cannot take more keys; kinds that can: bloom"):
        built.add("pear")
    with pytest.raises(tamis.UnsupportedError):
        built.update(["pear"])


def test_auto_takes_keys_unless_told_otherwise():
    assert tamis.Filter(keys=1000).add("apple")
    assert tamis.Filter(range(10_000), ops=[], minimise="memory").kind in BUILT_ONCE
    assert tamis.Filter(keys=10, ops=["count", "remove"]).count("apple") == 0


def test_removal():
    online = tamis.Filter(keys=100, rate=1e-6, ops=["remove"])
    online.update(["ada", "ada", "bob"])
    online.remove("ada")
    assert "ada" in online
    online.remove("ada")
    assert "ada" not in online
    with pytest.raises(KeyError) as caught:
        online.remove("ada")
    assert caught.value.args == ("ada",)
    assert online.remove_many(["bob", "eve"]) == 1 and len(online) == 0
    with pytest.raises(tamis.UnsupportedError, match="kinds that can: counting"):
        tamis.Filter(keys=10, kind="bloom").remove("ada")
    with pytest.raises(tamis.UnsupportedError):
        tamis.Filter(keys=10, kind="bloom").remove_many(["ada"])


def test_counts():
    words = tamis.Filter(["to", "be", "to"], kind="rank-counting", rate=1e-6)
    assert [words.count(word) for word in ("to", "be", "or")] == [2, 1, 0]
    few = tamis.Filter(keys=10, kind="counting", rate=1e-6)
    few.update(["to"] * 20)
    assert few.count("to") is None
    with pytest.raises(tamis.UnsupportedError, match="bloom filters cannot count"):
        tamis.Filter(keys=10, kind="bloom").count("to")


@pytest.mark.parametrize("kind", ["rank-map", "blocked-map", "dleft"])
def test_values(kind):
    ports = tamis.Filter(keys=100, rate=1e-6, kind=kind, ops=["value=9"])
    ports.add("http", 80)
    ports.update(["https", "ssh"], values=iter([443, 22]))
    assert [ports.values(key) for key in ("http", "https", "ssh", "gopher")] == [[80], [443], [22], []]
    before = ports.to_bytes()
    for refused in [
        lambda: ports.add("telnet", 512),
        lambda: ports.update(["a", "b"], values=[1]),
        lambda: ports.update(["a", "b"], values=[1, 512]),
    ]:
        with pytest.raises(ValueError):
            refused()
    assert ports.to_bytes() == before
    with pytest.raises(tamis.UnsupportedError, match="cannot keep values; kinds that can: rank-map"):
        tamis.Filter(keys=10, kind="bloom").values("http")
    with pytest.raises(tamis.UnsupportedError):
        tamis.Filter(keys=10, kind="bloom").add("http", 80)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in BUILT_ONCE])
def test_merging(kind):
    one, two = (tamis.Filter(keys=200, kind=kind) for _ in range(2))
    one.update(range(100))
    two.update(range(100, 200))
    try:
        both = one | two
    except tamis.UnsupportedError:
        assert kind.startswith("balanced")
        return
    assert all(both.contains(range(200))) and len(both) == 200
    assert len(one) == 100
    one |= two
    assert one == both
    two.merge(two)
    assert all(two.contains(range(100, 200)))


def test_merging_names_what_differs():
    one = tamis.Filter(keys=10, kind="bloom")
    before = one.to_bytes()
    for other, named in [
        (tamis.Filter(keys=10, kind="bloom", seed=1), "seed: 0 and 1"),
        (tamis.Filter(keys=10, kind="blocked"), "kind: bloom and blocked"),
        (tamis.Filter(keys=5000, kind="bloom"), "bits"),
    ]:
        with pytest.raises(tamis.MismatchError, match=named):
            one |= other
    with pytest.raises(TypeError):
        one |= {"ada"}
    assert one.to_bytes() == before


def test_copies_are_their_own():
    one = tamis.Filter(["ada"])
    for two in (one.copy(), copy.copy(one), copy.deepcopy(one)):
        assert two == one
        two.add("bob")
        assert "bob" not in one and two != one


def test_growing():
    seen = tamis.Filter(range(1000), kind="rank-indexed")
    before = seen.info()
    seen.grow()
    grown = seen.info()
    assert grown["fill"] < before["fill"] * 0.6 and all(seen.contains(range(1000)))
    seen.shrink()
    assert seen.info()["params"] == before["params"] and all(seen.contains(range(1000)))
    seen.grow()
    seen.update(range(1000, 2000))
    assert all(seen.contains(range(2000)))
    with pytest.raises(tamis.UnsupportedError, match="bloom filters cannot be laid out anew"):
        tamis.Filter(keys=10, kind="bloom").grow()


def test_plans():
    plans = tamis.plan(1_000_000, 0.001, ops=["insert", "remove"], minimise="memory")
    assert all(plan["rate"] <= 0.001 for plan in plans)
    lines = repr(plans).splitlines()
    assert lines[0].split()[:2] == ["kind", "rate"] and len(lines) == len(plans) + 1
    (plan,) = tamis.plan(1000, kind="bloom", params={"hashes": 3})
    built = tamis.Filter(keys=1000, kind="bloom", params={"hashes": 3})
    assert built.info()["params"] == plan["params"] and plan["params"]["hashes"] == 3
    assert tamis.plan(1000, memory=4096, kind="blocked")[0]["params"] == tamis.Filter(
        1000, memory=4096, kind="blocked"
    ).info()["params"]
    assert tamis.plan(1000, bits_per_key=12, kind="blocked")[0]["bits_per_key"] <= 13


def test_goals_that_cannot_be_met():
    for arguments, error, words in [
        (dict(keys=10, rate=1.5), tamis.GoalError, "rate"),
        (dict(keys=10, kind="cuckoo"), ValueError, "choose auto or one of bloom"),
        (dict(keys=10, ops=["fly"]), ValueError, "choose from insert"),
        (dict(keys=10, ops="insert"), TypeError, "give a list"),
        (dict(keys=10, ops=["value=99"]), ValueError, "1 to 32 bits"),
        (dict(keys=10, hash="md5"), ValueError, "xxh3"),
        (dict(keys=10, seed=1 << 64), ValueError, "64 bits"),
        (dict(keys=10, rate=0.1, memory=64), ValueError, "give one of"),
        (dict(keys=10, minimise="money"), ValueError, "balanced, memory, wire, lookups"),
        (dict(keys=10, kind="bloom", params={"wings": 2}), tamis.GoalError, "wings"),
        (dict(keys=10, kind="bloom", ops=["remove"]), tamis.GoalError, "bloom cannot remove"),
        (dict(keys=-1), ValueError, "2\\^64 - 1"),
        (dict(keys=1e6), TypeError, "as an int"),
        (dict(keys=1 << 62, rate=1e-9, kind="bloom"), (MemoryError, tamis.GoalError), "bytes|rate|keys"),
    ]:
        with pytest.raises(error, match=words):
            tamis.Filter(**arguments)


def test_a_trillion_keys_are_refused():
    """2^40 keys at 1% are 1.3 TB. The address space is limited, because a system that overcommits
    would hand them out, and kill the process later."""
    program = """
import resource, tamis
resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
for kind in ["auto", "bloom", "blocked", "counting", "rank-indexed", "blocked-rank", "dleft"]:
    try:
        tamis.Filter(keys=1 << 40, rate=0.01, kind=kind)
    except MemoryError as error:
        assert "cannot allocate" in str(error)
    else:
        raise AssertionError(kind)
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_closing(tmp_path):
    path = tmp_path / "seen.tamis"
    tamis.Filter(["ada"]).save(path)
    with tamis.open(path) as seen:
        assert "ada" in seen
    assert repr(seen) == "<tamis.Filter: closed>"
    for use in [
        lambda: "ada" in seen, lambda: len(seen), lambda: seen.add("ada"),
        lambda: seen.update(["ada"]), lambda: seen.contains(["ada"]), seen.to_bytes, seen.copy,
        lambda: tamis.Filter(["ada"]) | seen, lambda: seen == tamis.Filter(["ada"]), seen.info,
        lambda: seen.rate, lambda: seen.save(path), seen.content_id,
    ]:
        with pytest.raises(tamis.Error, match="closed"):
            use()
    seen.close()
    assert "ada" in tamis.open(path)


def test_progress(capsys):
    seen = tamis.Filter(range(10), progress=True)
    seen.update(range(300_000), progress=True)
    assert all(seen.contains(range(1000), progress=True))
    assert "key" in capsys.readouterr().err


def test_progress_without_tqdm(capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    tamis.Filter(keys=10).update(range(300_000), progress=True)
    assert "300,000 of 300,000 keys" in capsys.readouterr().err


def test_files(tmp_path):
    path = tmp_path / "seen.tamis"
    seen = tamis.Filter(range(1000), kind="blocked-rank")
    seen.save(path)
    os.chmod(path, 0o640)
    seen.add("more")
    seen.save(str(path))
    assert os.stat(path).st_mode & 0o777 == 0o640
    assert [entry.name for entry in tmp_path.iterdir()] == ["seen.tamis"]
    for mapped in (True, False):
        again = tamis.open(path, mapped=mapped)
        assert again == seen and "more" in again
    # Changes of a mapped filter stay in memory.
    mapped = tamis.open(path)
    mapped.add("and more")
    assert "and more" in mapped and "and more" not in tamis.open(path)
    for bad, error in [
        (tmp_path / "missing", FileNotFoundError), (tmp_path, ValueError),
    ]:
        with pytest.raises(error):
            tamis.open(bad)
    with pytest.raises(OSError):
        seen.save(tmp_path / "no" / "folder")
    (tmp_path / "empty").touch()
    with pytest.raises(tamis.FormatError, match="empty: not a tamis file"):
        tamis.open(tmp_path / "empty")


def test_deltas():
    old = tamis.Filter(range(1000), kind="blocked-rank")
    new = old.copy()
    new.update(range(2000, 2010))
    delta = old.diff(new)
    assert len(delta) < len(new.to_bytes()) // 4
    untouched = old.to_bytes()
    with pytest.raises(tamis.FormatError):
        old.patch(delta[:-1])
    assert old.to_bytes() == untouched
    old.patch(memoryview(delta))
    assert old == new and old.content_id() == new.content_id()
    with pytest.raises(tamis.MismatchError, match="get a snapshot"):
        old.patch(delta)
    with pytest.raises(tamis.MismatchError, match="seed"):
        old.diff(tamis.Filter(range(10), kind="blocked-rank", seed=1))


def test_packing():
    seen = tamis.Filter(range(1000), kind="bloom", rate=0.3)
    for effort in ("fast", "best"):
        assert tamis.Filter.from_bytes(seen.pack(effort)) == seen
    with pytest.raises(ValueError, match="fast"):
        seen.pack("furious")
    with pytest.raises(tamis.FormatError, match="beyond the limit of 10"):
        tamis.Filter.from_bytes(seen.to_bytes(), limit=10)
