"""Spark, with two executors in JVMs of their own."""

import os

import pytest

import tamis
from tamis import spark

from .cluster import KEYS, check_parts, check_semi_filter, killing, spark_keys, spark_session, whole

sql = pytest.importorskip("pyspark.sql")


@pytest.fixture(scope="module")
def session():
    session = spark_session()
    yield session
    session.stop()


def test_build_gives_the_file_of_one_machine(session, command, tmp_path):
    lines = [f"key {number}" for number in range(KEYS)]
    theirs = tmp_path / "theirs.tamis"
    command("build", "--kind", "rank-indexed", "--rate", "0.1%", "--keys", KEYS, "-o", theirs,
            stdin="".join(f"{line}\n" for line in lines).encode())
    df = spark_keys(session, KEYS)
    spark.build(df, "key", rate=0.001).save(tmp_path / "ours.tamis")
    assert (tmp_path / "ours.tamis").read_bytes() == theirs.read_bytes()
    assert spark.build(df, "id", keys=KEYS, seed=7) == whole(range(KEYS), seed=7)
    assert spark.build(df.coalesce(1), "id") == whole(range(KEYS))
    assert len(spark.build(df.limit(0), "id")) == 0


def test_an_executor_that_is_killed_changes_nothing(session, tmp_path):
    marker = tmp_path / "killed"
    df = spark_keys(session, KEYS).select("id")
    built = spark.build(df.mapInArrow(killing(str(marker)), df.schema), "id", keys=KEYS)
    assert marker.exists() and not os.path.exists(f"/proc/{marker.read_text()}")
    assert built == whole(range(KEYS))


def test_parts(session, tmp_path):
    """A folder is the one that a single machine makes, though keys come twice and an executor is
    killed; it is asked like a filter."""
    df = spark_keys(session, KEYS).select("key")
    twice = df.union(df.limit(100)).mapInArrow(killing(str(tmp_path / "killed")), df.schema)
    parts = spark.build_parts(twice, "key", str(tmp_path / "ours"), parts=6, rate=0.001)
    assert (tmp_path / "killed").exists()
    check_parts(parts, tmp_path)
    few = tamis.Parts.build((f"key {number}" for number in range(0, KEYS, 10)), tmp_path / "few", 3)
    kept = spark.semi_filter(spark_keys(session, KEYS), "key", few)
    check_semi_filter(kept.count(), KEYS, KEYS // 10, few.rate)


def test_asking(session):
    present = whole([f"key {number}" for number in range(0, KEYS, 10)], rate=0.01)
    df = spark_keys(session, KEYS)
    asked = spark.contains(df, "key", present).where("contains").select("id").collect()
    ids = {row.id for row in asked}
    assert set(range(0, KEYS, 10)) <= ids
    kept = spark.semi_filter(df, "key", present)
    assert kept.schema == df.schema
    check_semi_filter(kept.count(), KEYS, KEYS // 10, present.rate)
    assert {row.id for row in kept.collect()} == ids


def test_dedup(session):
    df = session.range(0, KEYS, 1, 8).selectExpr("id % 1000 as a", "cast(id % 3 as string) as b", "id")
    once = spark.dedup(df, ["a", "b"])
    assert once.schema == df.schema
    assert sorted((row.a, row.b) for row in once.collect()) == sorted(
        {(number % 1000, str(number % 3)) for number in range(KEYS)})
    nulls = session.createDataFrame([(None,), (None,), ("x",), ("x",)], "k string")
    assert spark.dedup(nulls, "k").count() == 3


def test_nulls_and_several_columns(session):
    rows = [("a", 1), (None, 2), ("b", None), ("c", 3)]
    df = session.createDataFrame(rows, "k string, n bigint")
    assert len(spark.build(df, "k")) == 3
    both = spark.build(df, ["k", "n"], rate=1e-6)
    assert len(both) == 2 and ("c", 3) in both
    assert [row.contains for row in spark.contains(df, ["k", "n"], both).collect()] == [
        True, False, False, True]
    with pytest.raises(ValueError, match="1 to 4 columns"):
        spark.build(df, [])
    with pytest.raises(tamis.GoalError, match="cannot"):
        spark.build(df, "k", kind="compressed")
