"""What runs before an image's own start script, and its edits: a node changes its mode by these, and by nothing else."""
