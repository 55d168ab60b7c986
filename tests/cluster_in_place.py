"""A Redis Cluster in place of the session's Redis, with ``--redis-cluster``: the same tests, by the cluster's URL.

Three primaries without replicas: the core's keys are on the first one, derived keys on the others. The client to
inspect them is redis-py's client of a cluster.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from redis.cluster import RedisCluster

from tests.redis_cluster import PrivateCluster
from tests.redis_process import newest

STOPS_IT = "stops, freezes or cuts off the one Redis"
COUNTS = "counts what one Redis did, or limits the memory of one Redis"
OWN_WRITER = "writes the log with a client of its own"
OWN_STEP = "on one Redis a script changes timelines itself, but on a cluster jobs do"
OWN_JOB = "a home that cannot be written holds up all homes of one Redis, but on a cluster it gets a job of its own"

LEFT_OUT = {
    "store/redis/": "tests the link to one Redis, to Sentinels or to a cluster of its own",
    "test_sessions.py::test_a_ticket_with_a_lost_answer": STOPS_IT,
    "test_idempotency.py::test_a_retried_batch": STOPS_IT,
    "test_writes.py::test_a_write_with_a_lost_answer": STOPS_IT,
    "test_writes.py::test_a_replica_changes_nothing": STOPS_IT,
    "test_rollbacks.py": OWN_WRITER,
    "test_retention.py::test_a_long_log_is_trimmed_in_slices": COUNTS,
    "test_retention.py::test_a_full_redis": COUNTS,
    "test_page_costs.py": COUNTS,
    "test_event_log.py::test_a_look_up_below": COUNTS,
    "test_step_timelines.py": OWN_STEP,
    "test_crashes.py::test_a_write_that_changes_all_timelines_itself": OWN_STEP,
    "test_away_servers.py": "has servers of its own in place of the nodes of a cluster",
    "test_writes.py::test_only_the_script_that_redis": COUNTS,
    "test_batches.py::test_a_timeline_of_several_new_statuses": COUNTS,
    "test_batches.py::test_a_transaction_has": COUNTS,
    "test_batches.py::test_a_failed_transaction": COUNTS,
    "test_repair.py::test_work_of_a_pending_job": OWN_JOB,
    "test_queue.py::test_a_job_is_parked": OWN_JOB,
    "test_queue.py::test_a_parked_job": OWN_JOB,
    "test_queue.py::test_retries_of_a_job": OWN_JOB,
}
"""Tests that are not run on a cluster, by parts of their ids, with the reason."""


ON_ALL_PRIMARIES = ("KEYS", "DBSIZE", "FLUSHALL", "SCRIPT FLUSH", "CONFIG SET", "CONFIG RESETSTAT")
"""Commands that concern the whole data. By default redis-py sends some of them to one node only."""


class SharedClient(RedisCluster):
    """A client of all nodes for the whole session, because each new one asks for the table of all commands."""

    def execute_command(self, *args: Any, **options: Any) -> Any:
        if args[0] in ON_ALL_PRIMARIES:
            options = {"target_nodes": self.PRIMARIES} | options
        return super().execute_command(*args, **options)  # type: ignore[no-untyped-call]  # redis-py

    def close(self) -> None:
        """Stay open: a test closes its client, and the next test has the same one."""


class ClusterInPlace:
    """The part of ``RedisProcess`` that tests of the store need, for a cluster."""

    def __init__(self, cluster: PrivateCluster) -> None:
        self.url = cluster.url
        host, port = cluster.nodes[0].address
        self._client = SharedClient(host=host, port=port, driver_info=None)

    def client(self) -> Any:
        return self._client


@contextmanager
def cluster_in_place() -> Iterator[ClusterInPlace]:
    """Run the cluster of a session. It writes nothing to disk."""
    with PrivateCluster(newest(), replicas=0, durable=False) as cluster:
        yield ClusterInPlace(cluster)


def skip_left_out(items: Iterable[pytest.Item]) -> None:
    """Skip the tests that need one Redis."""
    for item in items:
        reason = next((reason for part, reason in LEFT_OUT.items() if part in item.nodeid), "")
        if reason:
            item.add_marker(pytest.mark.skip(reason=reason))
