"""What tests of all clusters share: keys, and the filter that one machine makes of them."""

import os
import pathlib
import signal
import sys

import tamis

KEYS = 20_000
"""`benches/large.py` takes more."""


def whole(keys, **options):
    """The filter of the command line, as test_bytes.py shows."""
    return tamis.Filter(keys, kind="rank-indexed", **options)


def check_semi_filter(kept, rows, matching, rate):
    """All that match, and of the rest at most the promised share: eight deviations above."""
    rest = rows - matching
    assert matching <= kept <= matching + rest * rate + 8 * (rest * rate) ** 0.5 + 1


def check_parts(parts, folder):
    """The files in `folder / "ours"` are those that one machine makes of `key 0` and so on."""
    keys = (f"key {number}" for number in range(KEYS))
    whole = tamis.Parts.build(keys, folder / "theirs", len(parts.info()["parts"]), rate=0.001)
    assert parts.info() == whole.info()
    for file in (folder / "theirs").iterdir():
        assert (folder / "ours" / file.name).read_bytes() == file.read_bytes()


def spark_session():
    """Spark with two executors in JVMs of their own."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local-cluster[2,1,1024]")
    for name, value in {
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "4",
        "spark.task.maxFailures": "8",
        "spark.executor.memory": "1g",
        "spark.driver.host": "127.0.0.1",
        "spark.log.level": "ERROR",
    }.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def spark_keys(session, count, partitions=16):
    return session.range(0, count, 1, partitions).selectExpr("concat('key ', id) as key", "id")


def killing(marker):
    """Kills the executor that runs partition 5 with -9 in the middle of its work, once."""

    def work(batches):
        from pyspark import TaskContext

        for batch in batches:
            yield batch
            if TaskContext.get().partitionId() != 5 or pathlib.Path(marker).exists():
                continue
            pid = os.getpid()
            while b"CoarseGrainedExecutorBackend" not in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes():
                pid = int(pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])
                assert pid > 1, "no executor among the parents"
            pathlib.Path(marker).write_text(str(pid))
            os.kill(pid, signal.SIGKILL)

    return work
