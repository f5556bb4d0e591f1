"""The script of the replica's containers, as they get it."""

from importlib import resources

from switchover.cluster.door.mount import STARTS

NO_SCRIPTS = 200
"""The exit code that run.sh tells where it has nothing to run Kafka's classes with."""
RUN = STARTS + resources.files(__package__).joinpath("run.sh").read_text()
