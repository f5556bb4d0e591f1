"""The door reads and writes a file as java.util.Properties does, which Kafka reads its own with."""

import subprocess
from pathlib import Path

import pytest

from patience import stretched
from unit.door_files import FILES, fuzzed
from unit.test_door import EXIT_CONFIG, pod, start  # noqa: F401 - the fixture

DUMP = Path(__file__).with_name("PropertiesDump.java")
EDITS = ["mode B", "set added=\\ \\\\\\tx", "copy copied a", "drop zookeeper."]


def read(directory: Path) -> dict[str, dict[str, str] | None]:
    """What Java reads in each file of a directory; None where it refuses one."""
    told = subprocess.run(["java", "-XX:TieredStopAtLevel=1", DUMP, directory], capture_output=True, text=True, check=True,
                          timeout=stretched(120)).stdout
    found: dict[str, dict[str, str] | None] = {path.name: {} for path in directory.iterdir()}
    for line in told.splitlines():
        name, _, entry = line.partition(" ")
        if entry == "!":
            found[name] = None
            continue
        key, value = (bytes.fromhex(each[1:]).decode("utf-16-be", "surrogatepass") for each in entry.split(" "))
        known = found[name]
        assert known is not None
        known[key] = value
    return found


@pytest.mark.parametrize("count", [100, pytest.param(5_000, marks=pytest.mark.long)])
def test_what_kafka_would_read_is_what_it_gets(pod: Path, tmp_path: Path, count: int) -> None:  # noqa: F811
    files = tmp_path / "files"
    files.mkdir()
    texts, codes = (*FILES.values(), *fuzzed(count, seed=11)), []
    for number, text in enumerate(texts):
        (files / f"{number}-before").write_bytes(text)
        found = start(pod, EDITS, text)
        codes.append(found.code)
        if found.code == 0:
            (files / f"{number}-after").write_bytes(found.file)
    told = read(files)
    for number, text in enumerate(texts):
        keys = told[f"{number}-before"]
        if keys is None:
            assert codes[number] == EXIT_CONFIG, f"Java refuses it, and the door does not: {text!r}"
            continue
        copied = {"copied": keys["a"]} if "a" in keys and "copied" not in keys else {}
        wanted = {key: value for key, value in keys.items() if key and not key.startswith("zookeeper.")}
        seen = told[f"{number}-after"]
        assert seen is not None, text
        assert {key: value for key, value in seen.items() if key} == wanted | {"added": " \\\tx"} | copied, text
