"""docs/proof.md says what was run: its tables are made of the runs on record, and every claim has one."""

import json
import subprocess
import sys
from pathlib import Path

import proof
from ledger import Entry
from proof import CLAIMS, PAGE, ROOT, RUNS, Run


def test_the_page_has_the_tables_of_the_runs_on_record() -> None:
    assert proof.page(PAGE.read_text(), proof.read(RUNS)) == PAGE.read_text(), "make proof writes them"


def test_every_claim_names_files_that_are_there() -> None:
    named = {file for claims in CLAIMS.values() for claim in claims for file in f"{claim.files} {claim.long}".split()}
    assert [file for file in sorted(named) if not (ROOT / "tests" / file).is_file()] == []


def test_a_run_that_failed_or_is_old_is_seen() -> None:
    runs = {"a.py": Run("a.py", 3, 1, ["5 of 9 orders"], 2.4, "abc", "2026-01-02T00:00:00"),
            "b.py": Run("b.py", 4, 0, [], 1.0, "def", "2026-01-01T00:00:00")}
    assert proof.ordinary(runs, runs) == ("8 tests, **1 failed**; 5 of 9 orders", "3 s", "2026-01-01, def")
    entries = [Entry("abc", f"tests/a.py::test_{number}", "passed" if number else "failed", 1.0, f"2026-01-0{number + 1}")
               for number in range(3)]
    assert proof.lasting(["a.py"], entries) == "2 of 3, since 2026-01-01"
    assert proof.lasting(["b.py"], entries) == proof.ordinary(["c.py"], runs)[0] == "not on record"


def test_a_run_leaves_what_it_did_and_the_next_adds_to_it(tmp_path: Path) -> None:
    """As conftest.py registers it, of one real file and one that no claim names."""
    recorded = tmp_path / "proof.jsonl"
    script = ("import sys\nsys.path[:0] = ['tests', 'sandbox']\nimport pathlib, pytest, proof\n"
              "proof.RECORDED = pathlib.Path(sys.argv[1])\n"
              "sys.exit(pytest.main(['-q', '-p', 'no:cacheprovider', '-m', 'not long', *sys.argv[2:]]))\n")
    for file in ("unit/test_due.py", "unit/test_claims.py", "unit/test_ledger.py"):
        subprocess.run((sys.executable, "-c", script, recorded, f"tests/{file}"), cwd=ROOT, check=True, capture_output=True)
    lines = [json.loads(line) for line in recorded.read_text().splitlines()]
    assert [line["file"] for line in lines] == ["unit/test_claims.py", "unit/test_due.py"]
    assert all(line["passed"] > 0 == line["failed"] and line["commit"] for line in lines)

