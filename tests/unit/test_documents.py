"""The commands on the pages for users: each block says where it runs, and those that need no server run here."""

import re
from pathlib import Path

import pytest

from documents import PAGES, ROOT, Block, blocks, of, run

WORLDS = {"nothing": __file__, "api": "tests/apiserver/test_documents.py", "kafka": "tests/adapters/test_documents.py"}
"""And the test that runs what needs one."""
COMMAND = re.compile(r"^(?:\$|kubectl|switchover|helm|make|pip|kafka-\w+\.sh) ", re.MULTILINE)


def test_each_block_of_commands_says_where_it_runs() -> None:
    """What is none says what else it is."""
    assert [str(block) for block in blocks() if block.marker is None] == []
    places = {block.marker["world"] for block in blocks() if block.marker and "world" in block.marker}
    assert [place for place in places if not (ROOT / WORLDS.get(place, place)).is_file()] == []
    assert [str(block) for language in ("text", "promql") for block in blocks(language) if COMMAND.search(block.text)] == []


def test_no_fence_is_overlooked() -> None:
    """In an odd place it would not be run, and nobody would see that."""
    for page in PAGES:
        opened = re.findall(r"^ *```(\w*).*\n(?:.*\n)*?^ *```$", page.read_text(), re.MULTILINE)
        name = str(page.relative_to(ROOT))
        found = [block for language in {*opened} for block in blocks(language) if block.page == name]
        assert len(found) == len(opened) == page.read_text().count("```") / 2, name


@pytest.mark.parametrize("block", of("nothing"), ids=str)
def test_it_runs_with_nothing_but_the_checkout(block: Block, tmp_path: Path) -> None:
    run(block, tmp_path, block.script)


def test_a_command_that_fails_or_prints_something_else_is_seen(tmp_path: Path) -> None:
    for number, (text, wrong) in enumerate({
        "echo a\nfalse\necho b\n": "page:1: {.1.}", "$ echo 12 orders\n7 payments\n": "payments",
        "$ echo no\n": None, "$ echo 12 of `echo many` orders\n7 of … orders\n": None, "true | cat  # true\n": None,
    }.items()):
        block, place = Block("page", 1, text, {}), tmp_path / str(number)
        place.mkdir()
        if wrong is None:
            run(block, place, block.script)
        else:
            with pytest.raises(AssertionError, match=wrong):
                run(block, place, block.script)
