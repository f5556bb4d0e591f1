"""The scripts, as the pods get them."""

from importlib import resources

_HERE = resources.files(__package__)

DOOR = _HERE.joinpath("door.sh").read_text()
"""Stands over the image's own start script."""
STARTS = _HERE.joinpath("starts.sh").read_text()
"""A function that finds such scripts, for others to begin with."""
KEEP = STARTS + _HERE.joinpath("keep.sh").read_text()
"""What an init container runs before it: it keeps that script."""
GUARD = _HERE.joinpath("guard.sh").read_text()
"""What another runs in a controller's pod: no broker can start there."""
REACH = _HERE.joinpath("reach.sh").read_text()
"""What another runs there: whether brokers answer a controller's pod."""
TRIAL = _HERE.joinpath("trial.sh").read_text()
"""What one runs in the pod in which a template of the user's is tried: the door, and log directories without a log."""
