"""baseline: what each partition is used to by hour of week, and how often the gate would have cried over history."""
