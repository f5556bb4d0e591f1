"""A package, so that its servers (fixtures of scope "package") end with its last test and not with the run."""
