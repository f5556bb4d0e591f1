"""The demo of consumer groups: python -m demo_groups."""
