"""Decoders of what `__consumer_offsets` holds: numpy for offset commits, plain Python for groups and members."""
