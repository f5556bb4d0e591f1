"""A session starts from the archive of classes that the image names, with the class path the archive was made for."""

import os
from pathlib import Path

import pyspark
import pytest

from switchover.pipeline import session
from switchover.pipeline.config import Spark


class Told:
    """Stands for Spark's builder, and keeps what it was told."""

    def __init__(self) -> None:
        self.options: dict[str, str] = {}

    def master(self, name: str) -> "Told":
        return self.config("spark.master", name)

    def appName(self, name: str) -> "Told":  # noqa: N802
        return self.config("spark.app.name", name)

    def config(self, key: str, value: str) -> "Told":
        self.options[key] = value
        return self

    def getOrCreate(self) -> "Told":  # noqa: N802
        return self


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> Told:
    for name in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "SPARK_LOCAL_IP"):
        monkeypatch.setenv(name, os.environ.get(name, "127.0.0.1"))         # put back afterwards
    found = Told()
    monkeypatch.setattr("pyspark.sql.SparkSession.builder", found)
    return found


def test_every_jar_is_named_in_an_order_of_its_own(told: Told, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(session.ARCHIVE, "/opt/classes.jsa")
    session.session(Spark(), "test")
    named = told.options["spark.driver.extraClassPath"].split(":")
    assert named == sorted(named)
    jars = Path(pyspark.__file__).parent / "jars"
    assert {Path(jar).name for jar in named} == {each.name for each in jars.glob("*.jar")}
    assert told.options["spark.driver.extraJavaOptions"] == "-XX:SharedArchiveFile=/opt/classes.jsa -Xshare:auto"


def test_without_an_archive_java_starts_as_it_is(told: Told, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(session.ARCHIVE, raising=False)
    session.session(Spark(memory="3g"), "test")
    assert "spark.driver.extraJavaOptions" not in told.options
    assert (told.options["spark.master"], told.options["spark.driver.memory"]) == ("local[2]", "3g")


def test_what_spark_submit_was_told_holds(told: Told, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")
    monkeypatch.setenv(session.ARCHIVE, "/opt/classes.jsa")
    session.session(Spark(options={"spark.sql.shuffle.partitions": "99"}), "test")
    assert not told.options.keys() & {"spark.master", "spark.driver.memory", "spark.driver.host", "spark.driver.bindAddress",
                                      "spark.driver.extraJavaOptions", "spark.driver.extraClassPath"}
    assert told.options["spark.sql.shuffle.partitions"] == "99"
