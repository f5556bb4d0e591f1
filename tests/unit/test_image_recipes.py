"""The images of the operator and of the pipeline are made of the checkout itself: what they copy is there, and is let in."""

import re
from fnmatch import fnmatch
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RECIPES = {"operator": ROOT / "Dockerfile", "pipeline": ROOT / "sandbox/images/pipeline/Dockerfile"}


def stages(image: str) -> list[str]:
    """The text of each stage, without what stands before the first."""
    return re.split(r"^FROM ", RECIPES[image].read_text(), flags=re.MULTILINE)[1:]


def let_in(path: str) -> bool:
    """As .dockerignore says: nothing but what a line with an exclamation mark names, or lies below it."""
    lines = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if line and not line.startswith("#")]
    assert lines[0] == "*"
    assert all(line.startswith(("!", "**/")) for line in lines[1:])
    return any(fnmatch(path, line[1:]) or path.startswith(f"{line[1:]}/") for line in lines[1:] if line.startswith("!"))


@pytest.mark.parametrize("image", RECIPES)
def test_what_is_copied_is_in_the_checkout_and_let_in(image: str) -> None:
    copied = [path for line in re.findall(r"^COPY (?!--from)(.+)", RECIPES[image].read_text(), re.MULTILINE)
              for path in line.split()[:-1]]
    assert "operator" in copied
    for path in copied:
        assert (ROOT / path).exists(), path
        assert let_in(path), path
    assert not let_in("build")
    assert not let_in("operators")


@pytest.mark.parametrize("image", RECIPES)
def test_links_of_the_wheel_lead_to_what_is_copied(image: str) -> None:
    """A link is copied as a link: what it leads to must lie in the same place beside it."""
    wheel = stages(image)[0]
    for link in (path for path in (ROOT / "operator").rglob("*") if path.is_symlink()):
        target = link.resolve().relative_to(ROOT)
        assert f"COPY {target} /src/{target}" in wheel


def test_both_make_the_wheel_by_the_same_layers() -> None:
    assert stages("operator")[0] == stages("pipeline")[0]


def test_the_operators_is_made_without_running_anything_of_another_machine() -> None:
    *made_here, last = stages("operator")
    assert "\nRUN " not in last
    platforms = [stage.partition("\n")[0] for stage in made_here]
    assert all(each.startswith("--platform=$BUILDPLATFORM ") or each.startswith("dependencies ") for each in platforms)


@pytest.mark.parametrize("image", RECIPES)
def test_neither_runs_as_root(image: str) -> None:
    assert re.findall(r"^USER (.+)", stages(image)[-1], re.MULTILINE) == ["10001:10001"]
