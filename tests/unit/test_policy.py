"""Images that a migration may name: those of the container's own repository, and those that the chart allows."""

import pytest

from switchover.engine.policy import NOTHING_MORE, Policy, matches, repository


@pytest.mark.parametrize(("image", "expected"), [
    ("kafka", "kafka"),
    ("kafka:3.9", "kafka"),
    ("registry.example:5000/team/kafka", "registry.example:5000/team/kafka"),
    ("registry.example:5000/team/kafka:3.9@sha256:0123", "registry.example:5000/team/kafka"),
    ("localhost/kafka@sha256:0123", "localhost/kafka"),
])
def test_repository(image: str, expected: str) -> None:
    assert repository(image) == expected


@pytest.mark.parametrize(("image", "present", "allowed", "finds"), [
    ("kafka:2", "kafka:1", (), False),
    ("kafka:2", "", (), True),
    ("evil/kafka:1", "kafka:1", (), True),
    ("kafka-evil:1", "kafka:1", (), True),
    ("registry.example:5000/kafka:2", "registry.example:5001/kafka:1", (), True),
    ("registry.example/team/app:2", "app:1", ("registry.example/team/*",), False),
    ("registry.example.evil/team/app:2", "app:1", ("registry.example/team/*",), True),
    ("other/app:2", "app:1", ("registry.example/team/*", "other/app"), False),
    ("other/app/evil:2", "app:1", ("other/app",), True),
])
def test_images(image: str, present: str, allowed: tuple[str, ...], finds: bool) -> None:
    found = list(Policy(images=allowed).find_image("spec.image", image, present))
    assert [finding.reason for finding in found] == ["ImageNotAllowed"] * finds


@pytest.mark.parametrize(("allowed", "finds"), [((), True), (("orders-*",), False), (("orders",), True), (("*",), False)])
def test_names(allowed: tuple[str, ...], finds: bool) -> None:
    assert matches("orders-1", allowed) is not finds


def test_the_cure_is_what_is_missing() -> None:
    [finding] = NOTHING_MORE.find_image("spec.image", "evil:5/kafka:1", "kafka:1")
    assert "--set 'allow.images={evil:5/kafka}'" in finding.unblocks
