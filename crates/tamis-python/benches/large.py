"""Large runs on clusters, for scripts/long: what they give is compared with the command line.

    TAMIS=path/to/tamis python crates/tamis-python/benches/large.py NAME KEYS

NAME is one of

    spark      the file of `spark.build`, with 16 partitions and two executors
    killed     the same, with an executor killed with -9 in the middle
    dask, ray  the content id
    semi-join  KEYS rows of Spark against a hundredth of them

Keys are `key 0`, `key 1` and so on. The exit code is 1 if something differs.
"""

import json
import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import time

import tamis

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
from tests import cluster  # noqa: E402

RATE = 0.01


def command(*arguments, **options):
    return subprocess.run([os.environ["TAMIS"], *map(str, arguments)], check=True, **options)


def theirs(keys, path):
    """The file that the command line makes of the same keys."""
    lines = subprocess.Popen(["seq", "-f", "key %.0f", "0", str(keys - 1)], stdout=subprocess.PIPE)
    command("build", "--kind", "rank-indexed", "--rate", RATE, "--keys", keys, "-o", path,
            stdin=lines.stdout)
    assert lines.wait() == 0


def content_id(path):
    return json.loads(command("info", path, "--json", capture_output=True).stdout)["content_id"]


def most():
    """The most memory that this process has held, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def on_spark(keys, folder, killed):
    from tamis import spark

    session = cluster.spark_session()
    df = cluster.spark_keys(session, keys).select("key")
    # One small build first: what Python and Spark need by themselves is no part.
    spark.build(cluster.spark_keys(session, 1000), "key")
    marker = folder / "killed"
    if killed:
        df = df.mapInArrow(cluster.killing(str(marker)), df.schema)
    before, start = most(), time.monotonic()
    built = spark.build(df, "key", rate=RATE, keys=keys)
    took, held = time.monotonic() - start, most() - before
    assert marker.exists() is killed
    built.save(folder / "ours.tamis")
    session.stop()
    theirs(keys, folder / "theirs.tamis")
    subprocess.run(["cmp", folder / "ours.tamis", folder / "theirs.tamis"], check=True)
    part = (folder / "ours.tamis").stat().st_size
    print(f"{keys} keys, {took:.0f} s: the files are equal, {part} bytes; "
          f"the driver held {held} bytes, {held / part:.2f} times that")
    # Two parts: the bytes that came and the filter that is made of them.
    assert held <= 2.1 * part + (64 << 20)


def on_dask(keys, folder):
    import dask.dataframe
    import distributed
    import pandas

    from tamis import dask as ours

    def frame(start):
        numbers = pandas.Series(range(start, min(start + step, keys)))
        return pandas.DataFrame({"key": "key " + numbers.astype(str)})

    step = -(-keys // 16)
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as two:
        with distributed.Client(two):
            start = time.monotonic()
            df = dask.dataframe.from_map(frame, range(0, keys, step))
            compare(ours.build(df, "key", rate=RATE), keys, folder, start)


def on_ray(keys, folder):
    import ray

    from tamis import ray as ours

    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    start = time.monotonic()
    ds = ray.data.range(keys, override_num_blocks=16).map_batches(
        lambda batch: {"key": [f"key {number}" for number in batch["id"]]})
    compare(ours.build(ds, "key", rate=RATE), keys, folder, start)
    ray.shutdown()


def compare(built, keys, folder, start):
    took = time.monotonic() - start
    theirs(keys, folder / "theirs.tamis")
    assert built.content_id() == content_id(folder / "theirs.tamis")
    print(f"{keys} keys, {took:.0f} s: the content ids are equal, {built.content_id()}")


def semi_join(rows, _):
    from tamis import spark

    session = cluster.spark_session()
    df = cluster.spark_keys(session, rows)
    few = df.where("id % 100 = 0")
    start = time.monotonic()
    wanted = spark.build(few, "key", rate=0.001)
    kept = spark.semi_filter(df, "key", wanted)
    counts = kept.selectExpr("count(*)", "count_if(id % 100 = 0)").collect()[0]
    matching = len(range(0, rows, 100))
    print(f"{rows} rows against {matching} keys, {time.monotonic() - start:.0f} s: {counts[0]} "
          f"rows let through, {counts[1]} of them match; of the rest {(counts[0] - matching) / (rows - matching):.6f}, "
          f"promised 0.001")
    assert counts[1] == matching == len(wanted)
    cluster.check_semi_filter(counts[0], rows, matching, 0.001)


RUNS = {
    "spark": lambda keys, folder: on_spark(keys, folder, False),
    "killed": lambda keys, folder: on_spark(keys, folder, True),
    "dask": on_dask,
    "ray": on_ray,
    "semi-join": semi_join,
}

if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        RUNS[sys.argv[1]](int(sys.argv[2]), pathlib.Path(folder))
