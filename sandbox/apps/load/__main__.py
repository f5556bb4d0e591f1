"""The demo's load: python -m load produce | consume | history | verify."""

import argparse
import json
import os
import sys
from pathlib import Path

from confluent_kafka import KafkaException

from history.recorder import Recorder, opened
from load.consumer import consume
from load.history import History
from load.lost import BrokersLost
from load.producer import produce
from load.verify import verify
from switchover.runtime.signals import on_signals


def main() -> int:
    parser = argparse.ArgumentParser(prog="load", description=__doc__)
    parser.add_argument("command", choices=["produce", "consume", "history", "verify"])
    parser.add_argument("--bootstrap", default=os.environ.get("BOOTSTRAP_SERVERS", "kafka:9092"))
    parser.add_argument("--topic", default=os.environ.get("TOPIC", "orders"))
    parser.add_argument("--group", default=os.environ.get("GROUP", "orders"))
    parser.add_argument("--rate", type=int, default=int(os.environ.get("RATE", "600")), help="records a second")
    parser.add_argument("--every", type=int, default=int(os.environ.get("EVERY_MS", "20")),
                        help="milliseconds between two times that `produce` sends what is due")
    parser.add_argument("--history", type=Path, default=Path(os.environ.get("HISTORY", "/data/history.json")))
    parser.add_argument("--acknowledged", default=os.environ.get("ACKNOWLEDGED", os.devnull),
                        help="where `produce` writes what python -m history needs")
    given = parser.parse_args()

    if given.command == "history":
        sys.stdout.write(given.history.read_text())
        return 0
    if given.command == "verify":
        try:
            print(json.dumps(verify(given.bootstrap, given.topic, given.history)))
        except (KafkaException, RuntimeError, FileNotFoundError) as problem:
            print(f"load: not verified: {problem}", file=sys.stderr)
            return 1
        return 0

    stop = on_signals()
    history = History(os.environ.get("HOSTNAME", given.command), given.history)
    try:
        if given.command == "produce":
            recorder = Recorder(opened(given.acknowledged), history.name)
            produce(given.bootstrap, given.topic, given.rate, given.every / 1000, history, recorder, stop)
        else:
            consume(given.bootstrap, given.topic, given.group, history, stop)
    except BrokersLost as problem:
        print(f"load: {problem}; ending, so that the pod starts me anew", file=sys.stderr, flush=True)
        os._exit(1)         # a client that knows no broker may not let the process end
    return 0


if __name__ == "__main__":
    sys.exit(main())
