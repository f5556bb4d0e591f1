"""What stands over an image's own start script, and what it is told: a node changes its mode by it, and by nothing else."""

from importlib import resources

SCRIPT = resources.files(__name__).joinpath("door.sh").read_text()
"""The script, as the pods get it."""
