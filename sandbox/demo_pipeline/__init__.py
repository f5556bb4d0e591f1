"""`make demo-pipeline`: the five jobs of the pipeline in pods, on real migrations."""
