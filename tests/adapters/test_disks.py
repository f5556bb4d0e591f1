"""The report of the disks by real shells on real directories, and what it says of the log directories of real Kafka."""

import re
import subprocess
from pathlib import Path

import pytest

from adapters.admin import create_topic
from adapters.clusters import KafkaCluster
from adapters.pasting import Tools
from adapters.servers import ServerError
from patience import stretched, until
from switchover.api.job_message import LARGEST
from switchover.api.kafka_migration import NodeMode as Mode
from switchover.cluster.door import mount
from switchover.kubernetes import reports
from switchover.kubernetes.reports import DiskReport

SHELLS = [["/bin/dash"], ["/bin/bash", "--posix"]]
PARTITION = "version: 0\ntopic_id: UXH2d0aTQ4mBnUFiwLJOeA\n"
each_shell = pytest.mark.parametrize("shell", SHELLS, ids=["dash", "bash"])


def message(shell: list[str], *mounts: Path) -> bytes:
    """The termination message that the init container leaves with these mounts; it always ends with 0, silently."""
    log = (mounts[0] if mounts else Path.cwd()).parent / "termination-log"
    log.write_bytes(b"")
    script = mount.DISKS_SCRIPT.replace("/dev/termination-log", str(log))
    assert script != mount.DISKS_SCRIPT
    ran = subprocess.run([*shell, "-c", script, reports.DISKS, *map(str, mounts)], capture_output=True, check=True,
                         timeout=stretched(60), env={"PATH": "/nowhere"})               # it has nothing but the shell itself
    assert ran.stdout + ran.stderr == b""
    told = log.read_bytes()
    log.unlink()
    assert len(told) <= LARGEST
    return told


def report(shell: list[str], *mounts: Path) -> DiskReport | None:
    return reports.disks(message(shell, *mounts).decode())


def log_directory(path: Path, version: str = "0", *partitions: str, nameless: tuple[str, ...] = ()) -> Path:
    path.mkdir(parents=True)
    (path / "meta.properties").write_text(f"#\n#Fri Nov 20 10:00:00 2026\ncluster.id=abc\nversion={version}\nbroker.id=1\n")
    for name in (*partitions, *nameless):
        (path / name).mkdir()
        if name in partitions:
            (path / name / "partition.metadata").write_text(PARTITION)
    return path


@each_shell
def test_log_directories_are_found_wherever_they_lie_below_the_mount(tmp_path: Path, shell: list[str]) -> None:
    log_directory(tmp_path / "a", "0", "orders-0", "orders-1")
    log_directory(tmp_path / "b" / "data", "0", "orders-2")
    log_directory(tmp_path / "c" / "lib" / "kafka" / "with space", "0", "orders-3")
    assert report(shell, tmp_path / "a", tmp_path / "b", tmp_path / "c") == DiskReport(3, 4, 0, 0)
    log_directory(tmp_path / "d" / "1" / "2" / "3" / "4", "1", "orders-3")
    assert report(shell, tmp_path / "d") == DiskReport(0, 0, 0, 0)


@each_shell
def test_only_partition_directories_count(tmp_path: Path, shell: list[str]) -> None:
    """Names as Kafka gives them: dots and dashes and digits in topics, and directories that are no partitions."""
    directory = log_directory(
        tmp_path / "data", "0", ".hidden-0", "..-1", "a-b.c_d-12", "2026-11-21-3",
        nameless=("orders-0.0123456789abcdef0123456789abcdef-delete", "orders-1.0123456789abcdef0123456789abcdef-stray",
                  "orders-2.0123456789abcdef0123456789abcdef-future", "__cluster_metadata-0", "lost+found", "not-one"))
    for name in ("recovery-point-offset-checkpoint", "file-1"):
        (directory / name).write_text("0\n")
    assert report(shell, tmp_path) == DiskReport(1, 4, 0, 0)


@each_shell
def test_findings_are_counted_and_named(tmp_path: Path, shell: list[str]) -> None:
    data = log_directory(tmp_path / "data", "0", "orders-0", nameless=("orders-1", ".orders-2"))
    (data / "orders-0" / "partition.metadata").write_text("")                # a crash before it was flushed
    log_directory(tmp_path / "data-2", "1", "orders-3")
    found = report(shell, tmp_path)
    assert found is not None
    assert (found.directories, found.partitions, found.formatted, found.nameless) == (2, 4, 1, 3)
    assert found.formatted_directories == (str(tmp_path / "data-2"),)
    assert set(found.nameless_directories) == {str(data / name) for name in ("orders-0", "orders-1", ".orders-2")}


@each_shell
def test_a_thousand_findings_with_the_longest_names_fit_the_message(tmp_path: Path, shell: list[str]) -> None:
    for number in range(12):
        log_directory(tmp_path / f"data-{number}", "1",
                      nameless=tuple(f"{'t' * 249}-{partition}" for partition in range(90)))
    found = report(shell, tmp_path)
    assert found is not None
    assert (found.directories, found.partitions, found.formatted, found.nameless) == (12, 1080, 12, 1080)
    assert (len(found.formatted_directories), len(found.nameless_directories)) == (5, 5)


@each_shell
def test_a_path_too_long_to_tell_is_counted_all_the_same(tmp_path: Path, shell: list[str]) -> None:
    log_directory(tmp_path / ("m" * 200) / ("n" * 200), "1")
    assert report(shell, tmp_path) == DiskReport(1, 0, 1, 0)


@each_shell
def test_what_cannot_be_read_is_not_reported_as_healthy(tmp_path: Path, shell: list[str]) -> None:
    directory = log_directory(tmp_path / "mount" / "data", "0", "orders-0")
    (directory / "meta.properties").unlink()
    assert report(shell, tmp_path / "mount") == DiskReport(0, 0, 0, 0)
    (directory / "meta.properties").mkdir()                                  # nobody, not even root, reads lines of that
    found = report(shell, tmp_path / "mount")
    assert found is None or found.formatted == 1
    assert report(shell, tmp_path / "nothing") == DiskReport(0, 0, 0, 0)
    assert report(shell) == DiskReport(0, 0, 0, 0)


@each_shell
def test_a_report_that_cannot_be_written_ends_with_0_and_keeps_no_broker_down(tmp_path: Path, shell: list[str]) -> None:
    script = mount.DISKS_SCRIPT.replace("/dev/termination-log", str(tmp_path / "nothing" / "log"))
    subprocess.run([*shell, "-c", script, reports.DISKS, str(tmp_path)], check=True, timeout=stretched(60))


@pytest.mark.case("LogDirectoryFormatted", "TopicIdMissingOnDisk")
def test_real_kafka_refuses_what_the_report_calls_formatted_and_takes_the_cure(
        own_cluster: KafkaCluster, tmp_path: Path) -> None:
    """A broker on plain ZooKeeper; its directory is made version 1, and 0 by the runbook's command. A missing topic id comes
    with the restart."""
    own_cluster.start_zookeeper_mode()
    broker = own_cluster.brokers[1]
    create_topic(own_cluster.bootstrap, "orders", 3)
    broker.stop()
    meta = broker.directory / "data" / "meta.properties"
    healthy = report(SHELLS[0], broker.directory)
    assert healthy is not None
    assert (healthy.directories, healthy.formatted, healthy.nameless) == (1, 0, 0)
    assert healthy.partitions == 3
    cluster_id = re.search(r"cluster\.id=(\S+)", meta.read_text())
    assert cluster_id is not None

    meta.write_text(f"version=1\nnode.id=1\ncluster.id={cluster_id[1]}\ndirectory.id=bJrQZCIFTgi9qeJp1p4sSg\n")
    assert report(SHELLS[0], broker.directory) == DiskReport(1, healthy.partitions, 1, 0, (str(meta.parent),), ())
    with pytest.raises(ServerError, match="only support version 0"):
        broker.start(own_cluster.broker_properties(1, Mode.ZOOKEEPER))
    Tools(tmp_path).paste_page("brokers", "LogDirectoryFormatted", " sed ", POD="kafka-1",
                               CONTAINER="kafka", DIRECTORY=str(meta.parent))
    assert meta.read_text() == f"version=0\nbroker.id=1\ncluster.id={cluster_id[1]}\n"
    (meta.parent / "orders-1" / "partition.metadata").unlink()
    nameless = report(SHELLS[0], broker.directory)
    assert nameless is not None
    assert (nameless.formatted, nameless.nameless) == (0, 1)
    broker.start(own_cluster.broker_properties(1, Mode.ZOOKEEPER))
    own_cluster.wait_for_brokers()
    until(lambda: report(SHELLS[0], broker.directory) == healthy, "the broker has written the topic's id")
