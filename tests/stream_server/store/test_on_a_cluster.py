"""The tests of the store by the URL of a Redis Cluster alone, in a pytest of their own: see ``tests/cluster_in_place``.

``make test-all`` runs those whose data are on several nodes: timelines, jobs, repair. With ``--full`` all run.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
SPREAD = (
    "timelines", "jobs/test_repair.py", "jobs/test_queue.py", "jobs/test_fan_outs.py", "log/test_event_log.py",
    "social/test_follows.py", "social/test_lists.py",
)  # fmt: skip
ALL = ("timelines", "jobs", "log", "social", "test_store.py", "test_writes.py", "test_idempotency.py")
MIN_PASSED = 80


@pytest.mark.extended
@pytest.mark.timeout(900)
def test_the_store_on_a_cluster(*, full: bool) -> None:
    chosen = [str(HERE / part) for part in (ALL if full else SPREAD)]
    command = [sys.executable, "-m", "pytest", "--redis-cluster", "--quick", "-q", "-p", "no:cacheprovider", *chosen]
    alone = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    run = subprocess.run(command, capture_output=True, text=True, check=False, env=alone, cwd=HERE.parents[2])
    assert run.returncode == 0, run.stdout[-8000:] + run.stderr[-2000:]
    passed = re.search(r"(\d+) passed", run.stdout)
    assert passed is not None
    assert int(passed[1]) >= MIN_PASSED
