"""The cluster of the tests heals what a test has cut, before the next test uses it."""

import pytest

from tests.redis_cluster import PrivateCluster, wait_until
from tests.redis_process import newest
from tests.waiting import PATIENCE

pytestmark = pytest.mark.extended


def test_a_replica_that_copied_by_the_old_sync_copies_again() -> None:
    """It says that its link is up, and has the id of its primary. But it counts its offset from the copy."""
    with PrivateCluster(newest()) as cluster:
        core = cluster.owner()
        (replica,) = cluster.replicas(core)
        core.run("ACL", "SETUSER", "default", "-psync")
        core.run("CLIENT", "KILL", "TYPE", "replica")
        wait_until(lambda: replica.info()["slave_repl_offset"] < core.info()["master_repl_offset"], PATIENCE, "a copy")
        cluster.mend_replication(core)
        assert replica.info()["slave_repl_offset"] >= core.info()["master_repl_offset"]
