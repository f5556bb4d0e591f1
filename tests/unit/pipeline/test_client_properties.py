"""Client properties of the jobs: a file as Kafka's tools take it, or a Secret as a pod has it."""

from pathlib import Path

import pytest

from switchover.pipeline.capture.client import configuration
from switchover.pipeline.config import properties
from switchover.pipeline.outcome import BadConfig


def test_a_mounted_secret_has_a_file_for_each_property(tmp_path: Path) -> None:
    data = tmp_path / "..2026_11_22"                       # how the kubelet lays a Secret out
    data.mkdir()
    (data / "security.protocol").write_text("SSL")
    (tmp_path / "..data").symlink_to(data)
    (tmp_path / "security.protocol").symlink_to("..data/security.protocol")
    assert properties(tmp_path) == {"security.protocol": "SSL"}
    assert configuration("kafka:9092", tmp_path)["security.protocol"] == "SSL"


def test_a_file_is_read_as_java_reads_it(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text("# ours\nsecurity.protocol = SSL\n")
    assert properties(file) == {"security.protocol": "SSL"}
    assert properties(None) == {}


def test_what_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadConfig, match="No such file"):
        properties(tmp_path / "missing")
