"""The script of the replica's containers, as they get it."""

from importlib import resources

RUN = resources.files(__package__).joinpath("run.sh").read_text()
