"""What an application subscribes to, as the registration that other members read."""

import re
import time
from collections.abc import Iterable, Mapping

from switchover.consumer.settings import BadConfiguration
from switchover.coordination.registration import Registration, Subscribed, differs_in_java

_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")


def registered(topics: Iterable[str] | Mapping[str, int], whitelist: str, blacklist: str, streams: int) -> Registration:
    """Raises BadConfiguration for what is no subscription, or not the same one to members in Java."""
    if isinstance(topics, str):
        raise BadConfiguration(f"topics must be a list, not the text {topics!r}")
    counts = dict(topics) if isinstance(topics, Mapping) else dict.fromkeys(topics, streams)
    if sum(map(bool, (counts, whitelist, blacklist))) != 1:
        raise BadConfiguration("exactly one of topics, whitelist and blacklist must be given")
    for count in (*counts.values(), streams):
        if type(count) is not int or not 1 <= count <= 100:
            raise BadConfiguration(f"{count!r} is no number of streams: 1 to 100 are")
    stamp = int(time.time() * 1000)
    if counts:
        for topic in counts:
            if not isinstance(topic, str) or not _TOPIC.fullmatch(topic):
                raise BadConfiguration(f"{topic!r} is no name of a topic; expressions go into whitelist or blacklist")
        return Registration(counts, timestamp=stamp)
    pattern = whitelist or blacklist
    if differs_in_java(pattern):
        raise BadConfiguration(f"{pattern!r} may not mean the same in Java and in Python, and members must agree: use "
                               "names, | or commas, classes of characters, and . * + ?")
    return Registration({pattern: streams}, Subscribed.WHITE_LIST if whitelist else Subscribed.BLACK_LIST, stamp)
