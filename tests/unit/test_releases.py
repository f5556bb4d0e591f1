"""Releases of Kafka by their levels, as MetadataVersion of Kafka 4.4 has them."""

import pytest

from switchover.cluster.modes import CONTROLLERS_REGISTER, METADATA_LEVELS
from switchover.kafka.releases import final_protocol, release_at


def test_what_a_release_stands_for_is_its_last_level() -> None:
    assert METADATA_LEVELS == {"3.6": 14, "3.7": 19, "3.8": 20, "3.9": 21}
    assert [final_protocol(release) for release in METADATA_LEVELS] == ["3.6-IV2", "3.7-IV4", "3.8-IV0", "3.9-IV0"]
    assert CONTROLLERS_REGISTER == 15


@pytest.mark.parametrize(("level", "release"), [
    (0, (0, 0)), (11, (0, 0)), (12, (3, 6)), (19, (3, 7)), (20, (3, 8)), (21, (3, 9)), (22, (4, 0)), (25, (4, 0)),
    (26, (4, 1)), (29, (4, 2)), (30, (4, 3)), (31, (4, 4)), (99, (4, 4))])
def test_software_is_of_the_newest_release_that_brought_its_level(level: int, release: tuple[int, int]) -> None:
    assert release_at(level) == release
