"""`make lint`: how large the product, its tests, bench/ and documents are, and how often they say what they should not.

The table is ratchet.toml. A figure may fall; then `python tests/ratchet.py --lower` writes it there. One that rises is
written there by hand, with why, in the same commit.
"""

import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).parents[1]
TABLE = "ratchet.toml"
SOURCE = ROOT / "operator" / "switchover"
STEPS = {"lines": 100, "files": 10, "tests": 500, "bench": 100, "docs": 1000, "operator": 10, "prose": 10, "idioms": 1}
"""What the figures of a section are rounded up to: what hardly changes anything need not change the table."""
WORDS = ("told", "words", "anew", "beside", "kept", "cures?", "strangers?", "let[ _]go", "ways?[ _]back")
"""Our own where the field has a word of its own: reported, stored, fix, foreign member, rollback."""
GENERATED = re.compile(r"(<!-- table: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
"""What a program writes on a page (tests/proof.py), as it does the pages of docs/reference."""
IDIOMS = {"Known": r", Known\)", "Verdict": r"\| Verdict\b", "Unseen": r"\braise Unseen\b"}
"""Three ways to read a fact."""


def measured() -> dict[str, int]:
    """Every figure by its section and name."""
    source = {path: path.read_text(encoding="utf-8") for path in SOURCE.rglob("*.py")}
    docs = [GENERATED.sub("", path.read_text(encoding="utf-8"))
            for path in (ROOT / "docs").rglob("*.md") if path.parent.name != "reference"]
    code, prose = "\n".join(source.values()), "\n".join(docs)
    found = {"files.product": len(source), "docs.words": len(prose.split())}
    for folder in ("tests", "bench"):
        found[f"{folder}.lines"] = _lines(path.read_text(encoding="utf-8") for path in (ROOT / folder).rglob("*.py"))
    for room in sorted(path.name for path in SOURCE.iterdir() if any(path.glob("*.py"))):
        found[f"lines.{room}"] = _lines(text for path, text in source.items() if SOURCE / room in path.parents)
    found["lines.top"] = _lines(text for path, text in source.items() if path.parent == SOURCE)
    for word in WORDS:
        name, wanted = re.sub(r"\W", "", word.replace("[ _]", "_").replace("s?", "")), rf"(?i)(?<![a-z]){word}(?![a-z])"
        found[f"operator.{name}"], found[f"prose.{name}"] = (len(re.findall(wanted, text)) for text in (code, prose))
    found |= {f"idioms.{name}": sum(1 for _ in re.finditer(wanted, code)) for name, wanted in IDIOMS.items()}
    return {name: -(-figure // (step := STEPS[name.partition(".")[0]])) * step for name, figure in found.items()}


def _lines(texts: Iterable[str]) -> int:
    return sum(text.count("\n") for text in texts)


def figures(table: str) -> dict[str, int]:
    return {f"{section}.{name}": figure for section, each in tomllib.loads(table).items() if section != "why"
            for name, figure in each.items()}


def faults(found: Mapping[str, int], table: str, before: str) -> Iterator[str]:
    """What is wrong with the table, in lines; `before` is what it was at the last commit."""
    now, then = figures(table), figures(before)
    why, known = (tomllib.loads(each).get("why", {}) for each in (table, before))
    for name in sorted(found.keys() | now.keys()):
        figure, allowed = found.get(name, 0), now.get(name, 0)
        if figure > allowed:
            yield f"{name} is {figure}, {TABLE} allows {allowed}: make it less, or write {figure} there and why below [why]"
        elif figure < allowed:
            yield f"{name} is down to {figure}, and {TABLE} has {allowed}: python tests/ratchet.py --lower"
        if before and allowed > then.get(name, 0) and why.get(name, "") in ("", known.get(name)):
            yield f"{name} rises from {then.get(name, 0)} to {allowed} in {TABLE}: write why below [why], \"{name}\" = \"…\""


def lowered(found: Mapping[str, int], table: str) -> str:
    """The table with every figure that has fallen."""
    now, section, lines = figures(table), "", []
    for line in table.splitlines():
        section = line.strip("[]") if line.startswith("[") else section
        name = f"{section}.{line.partition(' = ')[0]}"
        if name not in now or found.get(name, 0) >= now[name]:
            lines.append(line)
        elif name in found:
            lines.append(f"{line.partition(' = ')[0]} = {found[name]}")
    return "\n".join(lines) + "\n"


def committed(table: str) -> str:
    """The table before: of the last commit, or of the one before where nothing of it is changed since. "": there is none."""
    for commit in ("HEAD", "HEAD~1"):
        shown = subprocess.run(["git", "show", f"{commit}:{TABLE}"], cwd=ROOT, capture_output=True, text=True, check=False)
        if shown.returncode or shown.stdout != table:
            break
    return shown.stdout if not shown.returncode else ""


def main() -> int:
    found, table = measured(), (ROOT / TABLE).read_text(encoding="utf-8")
    if sys.argv[1:] == ["--lower"]:
        table = lowered(found, table)
        (ROOT / TABLE).write_text(table, encoding="utf-8")
    wrong = [*faults(found, table, committed(table))]
    print("\n".join(wrong), end="\n" if wrong else "")
    return min(len(wrong), 1)


if __name__ == "__main__":
    sys.exit(main())
