"""What a SparkApplication names as its main file: local:///opt/pipeline.py."""

import sys

from switchover.pipeline.main import main

sys.exit(main(sys.argv[1:]))
