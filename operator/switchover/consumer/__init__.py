"""The migration-enabled consumer of KIP-125, a library for applications: `switchover[consumer]`."""
