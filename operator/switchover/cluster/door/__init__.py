"""What stands over an image's own start script, and what it is told: a node changes its mode by it, and by nothing else."""
