"""How long a session and its first job take: `python measure_start.py [TIMES]`, with SWITCHOVER_CLASS_ARCHIVE or without.

For each start a line: wall seconds until the session is there, until the first job has ended, CPU seconds of the JVM.
"""

import os
import subprocess
import sys
import time

ONCE = """
import os, time
began = time.monotonic()
from pyspark import SparkContext
from switchover.pipeline.config import Spark
from switchover.pipeline.session import session
spark = session(Spark(), "start")
there = time.monotonic() - began
assert spark.range(1000).selectExpr("id % 7 AS k").groupBy("k").count().toArrow().num_rows == 7
done = time.monotonic() - began
fields = open(f"/proc/{SparkContext._gateway.proc.pid}/stat").read().rpartition(")")[2].split()
print(f"{there:.1f} {done:.1f} {(int(fields[11]) + int(fields[12])) / os.sysconf('SC_CLK_TCK'):.1f}")
"""

if __name__ == "__main__":
    print("archive:", os.environ.get("SWITCHOVER_CLASS_ARCHIVE", "none"))
    for _ in range(int(sys.argv[1]) if len(sys.argv) > 1 else 3):
        told = subprocess.run([sys.executable, "-c", ONCE], capture_output=True, text=True, check=True)
        print(told.stdout.splitlines()[-1], f"(load {os.getloadavg()[0]:.1f})", flush=True)
        time.sleep(1)
