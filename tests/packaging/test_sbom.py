"""The bill of materials of each extra: `make sbom` makes it of what is locked, and it names all of that with its hashes."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import notice

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("extra", [
    pytest.param(each, marks=[] if each == "operator" else pytest.mark.long) for each in notice.SHIPPED])
def test_it_names_every_locked_package_with_its_hashes(extra: str) -> None:
    file = Path("build/sbom") / f"{extra}.cdx.json"
    (ROOT / file).unlink(missing_ok=True)
    subprocess.run(("make", file, f"BIN={Path(sys.executable).parent}"), cwd=ROOT, check=True, capture_output=True)
    found = json.loads((ROOT / file).read_text())
    assert found["bomFormat"] == "CycloneDX"
    assert (found["metadata"]["component"]["name"], found["metadata"]["component"]["version"]) == ("switchover", "0.1.0")
    lines = re.split(r"\n(?=\w)", (ROOT / "requirements" / f"{extra}.txt").read_text())
    wanted = {line.split()[0]: set(re.findall(r"sha256:(\w+)", line)) for line in lines}
    assert {"kazoo", "google-re2"} <= {each.partition("==")[0] for each in wanted}
    assert {f"{each['name']}=={each['version']}": {
        digest["content"] for reference in each["externalReferences"] for digest in reference.get("hashes", ())}
        for each in found["components"]} == wanted
