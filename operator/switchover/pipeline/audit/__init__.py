"""audit: whether any record of a group was consumed twice or by nobody, from offsets and ownership."""
