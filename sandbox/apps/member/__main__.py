"""A sample consumer that writes its history: python -m member (settings: member/settings.py)."""

import os
import sys
from typing import Any

from confluent_kafka import Consumer

from history.recorder import Recorder, opened
from member.membership import Membership, OutOfTheGroup
from member.settings import Settings, in_force
from switchover.runtime.signals import on_signals


def main() -> int:
    settings = Settings.of(in_force(os.environ))
    stop = on_signals()
    recorder = Recorder(opened(settings.history), settings.name, instance=settings.instance, words=settings.words())
    client = settings.client(lambda error: recorder.error(error.name()))
    outside: dict[str, Any] = {
        "bootstrap.servers": settings.bootstrap, "group.id": f"{settings.group}-double", "enable.auto.commit": False,
    }
    membership = Membership(
        Consumer(client), recorder, settings.topic, settings.commit_interval, settings.faults, lambda: Consumer(outside)
    )
    try:
        while not stop.is_set():
            membership.turn()
    except OutOfTheGroup as problem:
        print(f"member: out of the group: {problem}", file=sys.stderr)
        return 1
    membership.leave()
    return 0


if __name__ == "__main__":
    sys.exit(main())
