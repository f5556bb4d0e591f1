"""`python -m switchover.pipeline JOB --config FILE`."""

import sys

from switchover.pipeline.main import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
