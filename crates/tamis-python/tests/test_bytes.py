"""Bytes: those of the command line, the golden files, and pickles."""

import pathlib
import pickle
import re
import shlex
import subprocess
import sys

import pytest

import tamis

from .conftest import KINDS


@pytest.mark.parametrize("kind", KINDS)
def test_bytes_are_those_of_the_command_line(kind, command, tmp_path):
    lines = [f"https://example.org/{number * 7919}" for number in range(3000)]
    text = "".join(f"{line}\n" for line in lines).encode()
    for number, (options, arguments) in enumerate([
        ([], {}),
        (["--seed", "7"], {"seed": 7}),
        (["--hash", "sip13", "--seed", str(1 << 100)], {"hash": "sip13", "seed": 1 << 100}),
        (["--hash", "xxh64"], {"hash": "xxh64"}),
    ]):
        theirs = tmp_path / f"{number}.tamis"
        command("build", "--kind", kind, "--rate", "0.2%", "--keys", 3000, *options, "-o", theirs,
                stdin=text)
        ours = tamis.Filter(lines, rate=0.002, kind=kind, **arguments)
        assert ours.to_bytes() == theirs.read_bytes()
        ours.save(tmp_path / "ours.tamis")
        assert (tmp_path / "ours.tamis").read_bytes() == theirs.read_bytes()
        if ours.kind not in ("partitioned", "compressed", "ribbon"):
            grown = tamis.Filter(3000, rate=0.002, kind=kind, **arguments)
            grown.update(iter(lines))
            assert grown.to_bytes() == theirs.read_bytes()
        assert command("pack", "--best", theirs, "-o", "-") == ours.pack("best")


@pytest.mark.parametrize(
    "kind", [plan["kind"] for plan in tamis.plan(3000, ops=["insert", "merge"])])
def test_merged_parts_are_the_whole(kind):
    """As clusters build: every part is planned for all keys."""
    whole = tamis.Filter(range(3000), rate=0.002, kind=kind)
    parts = [tamis.Filter(3000, rate=0.002, kind=kind) for _ in range(4)]
    for number, part in enumerate(parts):
        part.update(range(number, 3000, 4))
    merged = parts.pop(2)
    for part in parts:
        merged.merge(part)
    assert merged.contains(range(3000)).all() and merged.info()["params"] == whole.info()["params"]
    # Where keys lie depends on the order in which they came.
    if kind == "dleft":
        assert merged.content_id() == whole.content_id()
    elif not kind.startswith("balanced-"):
        assert merged.to_bytes() == whole.to_bytes()


def test_integers_are_those_of_the_command_line(command, tmp_path):
    numbers = [0, 1, -1, 2**64 - 1, -(2**63), 10**18] + list(range(-500, 500))
    text = "".join(f"{number}\n" for number in numbers).encode()
    theirs = tmp_path / "theirs.tamis"
    command("build", "--integers", "--kind", "blocked-rank", "-o", theirs, "--keys", len(numbers),
            stdin=text)
    assert tamis.Filter(numbers, kind="blocked-rank").to_bytes() == theirs.read_bytes()
    refused = command("check", "--integers", theirs, stdin=b"12a\n", check=False)
    assert refused.returncode == 2 and b"'12a' is no integer" in refused.stderr


@pytest.mark.parametrize("compression", ["none", "snappy", "gzip", "zstd", "lz4"])
def test_the_command_line_reads_the_same_columns(compression, command, tmp_path):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    rows = range(5000)
    texts = pa.array([None if n % 7 == 3 else f"key {n}" for n in rows])
    columns = {
        "text": texts,
        "large": texts.cast(pa.large_string()),
        "coded": texts.dictionary_encode(),
        "bytes": texts.cast(pa.binary()),
        "fixed": pa.array([n.to_bytes(4, "big") for n in rows], pa.binary(4)),
        "signed": pa.array([n - 2500 for n in rows], pa.int64()),
        "unsigned": pa.array([2**64 - 1 - n for n in rows], pa.uint64()),
        "short": pa.array([65535 - n for n in rows], pa.uint16()),
    }
    table = pa.table({**columns, "user": pa.array([{"id": n} for n in rows])})
    path, theirs = tmp_path / "rows.parquet", tmp_path / "theirs.tamis"
    for version in ("1.0", "2.0"):
        pq.write_table(table, path, compression=compression, row_group_size=1900,
                       data_page_version=version)
        for name, column in {**columns, "user.id": pa.array(rows)}.items():
            ours = tamis.Filter(column, rate=0.001, kind="blocked-rank")
            integers = ["--integers"] if pa.types.is_integer(column.type) else []
            command("build", "--kind", "blocked-rank", "--rate", "0.1%", "--parquet", name,
                    *integers, "-o", theirs, path)
            assert tamis.open(theirs) == ours, name
    tuples = tamis.Filter(table.select(["text", "bytes"]), rate=0.001, kind="blocked-rank")
    command("build", "--kind", "blocked-rank", "--rate", "0.1%", "--parquet", "text", "--parquet",
            "bytes", "-o", theirs, path)
    assert tamis.open(theirs) == tuples


def test_planning_is_that_of_the_command_line(command):
    import json

    for kind in KINDS:
        theirs = json.loads(command("plan", "--kind", kind, "--keys", 5000, "--rate", "0.1%", "--json"))
        (ours,) = tamis.plan(5000, 0.001, kind)
        assert ours["params"] == theirs["params"]
        assert ours["rate"] == theirs["predicted"]["rate"]
    best = json.loads(command("plan", "--keys", 5000, "--ops", "insert,count", "--json"))
    assert [plan["kind"] for plan in best] == [
        plan["kind"] for plan in tamis.plan(5000, ops=["insert", "count"])
    ]


def described(golden, path):
    return (golden / f"{path.stem}.txt").read_text()


def test_golden_files_are_read_and_written_again(golden, tmp_path):
    files = sorted(golden.glob("*.tamis"))
    assert len(files) >= 25
    for path in files:
        bytes_ = path.read_bytes()
        text = described(golden, path)
        for filter in (
            tamis.Filter.from_bytes(bytes_), tamis.open(path), tamis.open(path, mapped=False),
            pickle.loads(pickle.dumps(tamis.open(path))),
        ):
            assert filter.to_bytes() == bytes_, path
            assert f"content id {filter.content_id()}\n" in text, path
            assert f"keys {len(filter)}\n" in text, path
        members = re.findall(r"^false positive (\d+)$", text, re.M)
        asked = [str(number) for number in range(1_000_000, int(members[-1]) + 1)]
        answers = filter.contains(asked, out="list")
        found = [key for key, answer in zip(asked, answers) if answer]
        assert found == members and len(members) == 20, path
        packed = path.with_suffix(".packed")
        if packed.exists():
            assert tamis.Filter.from_bytes(packed.read_bytes()) == filter
        delta = path.with_suffix(".delta")
        if delta.exists():
            filter.patch(delta.read_bytes())
            assert filter.to_bytes() != bytes_


def test_golden_pickles(golden):
    """Pickles of the first version, which every later one must read: both directions."""
    folder = pathlib.Path(__file__).parent / "golden"
    pickles = sorted(folder.glob("*.pickle"))
    assert len(pickles) == 16
    for path in pickles:
        filter = pickle.loads(path.read_bytes())
        assert filter == tamis.open(golden / f"{path.stem}.tamis"), path
        # What is written now is what was written then: older versions read it.
        assert pickle.dumps(filter, protocol=4) == path.read_bytes(), path


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_pickles(protocol):
    filter = tamis.Filter(["ada"], seed=3)
    assert pickle.loads(pickle.dumps(filter, protocol)) == filter


def test_pickles_out_of_band():
    filter = tamis.Filter(range(10_000))
    buffers = []
    data = pickle.dumps(filter, protocol=5, buffer_callback=buffers.append)
    assert len(data) < 200 and buffers[0].raw().tobytes() == filter.to_bytes()
    assert pickle.loads(data, buffers=buffers) == filter
    assert pickle.loads(data, buffers=[bytearray(buffers[0].raw())]) == filter


def test_pickles_between_processes(tmp_path):
    path = tmp_path / "seen.pickle"
    program = (
        "import pickle, tamis; "
        f"pickle.dump(tamis.Filter(['ada'], seed=5), open({str(path)!r}, 'wb'))"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
    assert pickle.loads(path.read_bytes()) == tamis.Filter(["ada"], seed=5)


def test_hostile_pickles_are_refused(golden):
    import random

    chance = random.Random(1)
    for path in sorted(golden.glob("*.tamis")):
        filter = tamis.open(path)
        good = filter.to_bytes()
        whole = pickle.dumps(filter, protocol=5)
        for _ in range(40):
            bad = bytearray(good)
            for _ in range(chance.choice([1, 1, 3])):
                bad[chance.randrange(len(bad))] ^= 1 << chance.randrange(8)
            bad = bad[: chance.choice([len(bad), chance.randrange(len(bad))])]
            if bad == good:
                continue
            forged = whole.replace(good, bytes(bad).ljust(len(good), b"\0"))
            with pytest.raises(tamis.FormatError):
                pickle.loads(forged)
            with pytest.raises(tamis.FormatError):
                tamis.Filter.from_bytes(bad)


def test_golden_commands_give_golden_files(golden):
    """Those commands of the golden files that Python can say, with keys by `seq`."""
    made = 0
    for line in (golden / "README.md").read_text().splitlines():
        match = re.fullmatch(r"seq (\d+) \| tamis build (.*) -o (\S+)", line)
        if not match:
            continue
        words = shlex.split(match[2])
        options = list(zip(words[::2], words[1::2]))
        arguments = {name[2:]: value for name, value in options if name != "--param"}
        params = dict(value.split("=") for name, value in options if name == "--param")
        keys = [str(number) for number in range(1, int(match[1]) + 1)]
        if int(arguments["keys"]) != len(keys):
            continue
        filter = tamis.Filter(
            keys, rate=float(arguments["rate"].rstrip("%")) / 100, kind=arguments["kind"],
            params={name: int(value) for name, value in params.items()},
            seed=int(arguments.get("seed", "0"), 0), hash=arguments.get("hash", "xxh3"),
        )
        assert filter.to_bytes() == (golden / match[3]).read_bytes(), line
        made += 1
    assert made >= 12
