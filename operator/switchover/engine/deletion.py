"""The way out for whoever wants a migration gone as it is."""

ABANDON = "switchover.dev/abandon"
"""Annotation that lets a migration be deleted although it is under way; what stays behind is listed."""
LET_GO = f"or annotate it with {ABANDON}=true: it is let go at once, and everything stays as it is"
