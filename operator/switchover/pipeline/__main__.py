"""`python -m switchover.pipeline JOB --config FILE`."""

import sys

from switchover.runtime.extras import needed_by

if __name__ == "__main__":
    with needed_by("pipeline"):
        from switchover.pipeline.main import main

        sys.exit(main(sys.argv[1:]))
