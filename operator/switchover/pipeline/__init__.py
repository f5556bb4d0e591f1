"""PySpark over the fleet: capture, inventory and waves, baseline, audit, drift. Batch work that never gates live.

Every job reads a configuration file and what `capture` has filed, and leaves Parquet with a manifest. Shares only `api`,
`lag` and `metadata` with the operator; how a job is started in Kubernetes is in `kubernetes/launch`.
"""
