"""The commands on the pages for users: each block says where it runs, and those that need no server run here."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from documents import PAGES, ROOT, Block, blocks, of, run
from switchover.api.consumer_group_migration import ConsumerGroupMigration
from switchover.api.kafka_migration import KafkaMigration
from switchover.api.schema import Model
from switchover.pipeline.config import Config

MODELS: dict[str, type[Model]] = {"KafkaMigration": KafkaMigration, "ConsumerGroupMigration": ConsumerGroupMigration}
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
        "echo a\nfalse\necho b\n": r"page:1: \[.1.\]", "$ echo 12 orders\n7 payments\n": "payments",
        "$ echo no\n": None, "$ echo 12 of `echo many` orders\n7 of … orders\n": None, "true | cat  # true\n": None,
    }.items()):
        block, place = Block("page", 1, text, {}), tmp_path / str(number)
        place.mkdir()
        if wrong is None:
            run(block, place, block.script)
        else:
            with pytest.raises(AssertionError, match=wrong):
                run(block, place, block.script)


def example(file: str, change: dict[str, Any]) -> dict[str, Any]:
    resource: dict[str, Any] = yaml.safe_load((ROOT / "examples" / "kubectl" / file).read_text())
    return {**resource, "spec": {**resource["spec"], **change}}


def whole(page: str, shown: dict[str, Any]) -> tuple[type[Model], dict[str, Any]] | None:
    """What a page shows, a part of a spec in an example; None for what is of somebody else, or of the chart."""
    if page.startswith("docs/pipeline/"):
        return Config, {"cluster": "production", "store": "/data", **shown}
    if str(shown.get("apiVersion")).startswith("switchover.dev/"):
        return MODELS[shown["kind"]], shown
    if shown.keys() == {"spec"} and "ignoreDifferences" not in shown["spec"]:
        return KafkaMigration, example("kafka-migration.yaml", shown["spec"])
    if shown.keys() <= {"workloads", "rollout", "audit"}:
        return ConsumerGroupMigration, example("consumer-group-migration.yaml", shown)
    assert shown.keys() & {"kind", "spec", "watch", "notifications"} or page.startswith("docs/charts/"), f"{page}: {shown}"
    return None


def lost(given: Any, kept: Any, path: str = "") -> Iterator[str]:
    """The fields that a model has ignored."""
    if isinstance(given, dict):
        for name, value in given.items():
            if value is not None and name not in kept:
                yield f"{path}.{name}"
            elif value is not None:
                yield from lost(value, kept[name], f"{path}.{name}")
    elif isinstance(given, list):
        for number, (one, other) in enumerate(zip(given, kept, strict=True)):
            yield from lost(one, other, f"{path}[{number}]")


def test_what_the_pages_show_in_yaml_is_taken_whole_by_the_models() -> None:
    found = 0
    for block in blocks("yaml"):
        for shown in yaml.safe_load_all(block.text):
            if (meant := whole(block.page, shown)) is not None:
                model, given = meant
                taken = model.model_validate(given)
                assert list(lost(given.get("spec"), taken.manifest().get("spec"))) == [], str(block)
                found += 1
    assert found > 30
    assert list(lost({"a": [{"b": 1}, {"c": None}]}, {"a": [{}, {}]})) == [".a[0].b"]
