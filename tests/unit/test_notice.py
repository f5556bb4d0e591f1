"""NOTICE names every package that is shipped, and nothing is shipped under a licence that we have not agreed to."""

from email.message import Message

import pytest

import notice


def test_the_notice_is_what_the_locked_packages_say() -> None:
    assert notice.NOTICE.read_text() == notice.notice(), "run `make notice`"


def test_it_names_what_each_image_installs() -> None:
    lines = {line.split()[0]: line for line in notice.notice().removeprefix(notice.HEAD).splitlines()}
    assert {"kopf", "kazoo", "certifi"} < set(notice.locked("operator"))
    assert "colorama" not in lines, "for Windows alone"
    for extra in notice.SHIPPED:
        assert {package for package, line in lines.items() if extra in line.rpartition("  ")[2]} == set(notice.locked(extra))


@pytest.mark.parametrize(("text", "allowed"), [
    ("MIT", True),
    ("Apache-2.0 AND MIT", True),
    ("GPL-3.0-or-later OR BSD-3-Clause", True),
    ("GPL-3.0-or-later", False),
    ("MIT AND AGPL-3.0-only", False),
    ("unknown", False),
])
def test_what_may_be_shipped(text: str, allowed: bool) -> None:
    assert notice.is_allowed(text) is allowed


def test_a_package_that_may_not_be_shipped_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tool of the developer may be under the GPL: nobody gets it from us."""
    assert notice.licence("async-solipsism") == "GPL-3.0-or-later"
    locked = notice.locked
    monkeypatch.setattr(notice, "locked", lambda extra: [*locked(extra), "async-solipsism"])
    with pytest.raises(ValueError, match=r"^licences that may not be shipped: async-solipsism: GPL-3.0-or-later$"):
        notice.notice()


@pytest.mark.parametrize(("fields", "told"), [
    ({"License-Expression": "MIT", "License": "BSD"}, "MIT"),
    ({"License": "ISC", "Classifier": "License :: OSI Approved :: BSD License"}, "ISC"),
    ({"License": "Copyright\nall of it", "Classifier": "License :: OSI Approved :: BSD License"}, "BSD License"),
    ({"License": "Copyright\nall of it"}, "unknown"),
    ({}, "unknown"),
])
def test_what_metadata_say(fields: dict[str, str], told: str, monkeypatch: pytest.MonkeyPatch) -> None:
    message = Message()
    for name, value in fields.items():
        message[name] = value
    monkeypatch.setattr(notice, "metadata", lambda package: message)
    assert notice.licence("any") == told
