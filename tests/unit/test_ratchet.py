"""The ratchet: a figure falls for good, and rises with a reason alone."""

import tomllib

import pytest

import ratchet

TABLE = '# How large.\n\n[lines]\ncli = 5300\nengine = 3800\n\n[why]\n"lines.cli" = "the report"\n'
FOUND = {"lines.cli": 5300, "lines.engine": 3800}
RAISED = TABLE.replace("cli = 5300", "cli = 5400")


@pytest.mark.parametrize(("found", "table", "before", "words"), [
    (FOUND, TABLE, TABLE, None),
    (FOUND, TABLE, "", None),
    (FOUND | {"lines.cli": 5400}, TABLE, TABLE, "lines.cli is 5400, ratchet.toml allows 5300"),
    (FOUND | {"lines.new": 100}, TABLE, TABLE, "lines.new is 100, ratchet.toml allows 0"),
    (FOUND | {"lines.cli": 5400}, RAISED, TABLE, "lines.cli rises from 5300 to 5400"),
    (FOUND | {"lines.cli": 5400}, RAISED.replace("the report", ""), TABLE, "lines.cli rises from 5300 to 5400"),
    (FOUND | {"lines.cli": 5400}, RAISED.replace("the report", "the dashboard"), TABLE, None),
    (FOUND | {"lines.cli": 5400}, RAISED, RAISED, None),
    (FOUND | {"lines.engine": 3700}, TABLE, TABLE, "lines.engine is down to 3700"),
    ({"lines.cli": 5300}, TABLE, TABLE, "lines.engine is down to 0"),
])
def test_what_is_wrong_with_a_table(found: dict[str, int], table: str, before: str, words: str | None) -> None:
    wrong = [*ratchet.faults(found, table, before)]
    assert len(wrong) == (words is not None)
    assert words is None or wrong[0].startswith(words)


def test_what_has_fallen_is_written_and_nothing_that_rose() -> None:
    assert ratchet.lowered({"lines.cli": 5200, "lines.engine": 3900}, TABLE) == TABLE.replace("5300", "5200")
    assert "engine" not in ratchet.lowered({"lines.cli": 5300}, TABLE)


def test_the_table_names_what_is_measured_and_a_text_has_its_words_counted() -> None:
    found = ratchet.measured()
    assert found.keys() == ratchet.figures((ratchet.ROOT / ratchet.TABLE).read_text()).keys()
    assert min(found.values()) >= 0
    assert all(each in tomllib.loads((ratchet.ROOT / ratchet.TABLE).read_text()) for each in ratchet.STEPS)
    assert found["lines.engine"] > 1000 < found["docs.words"]
