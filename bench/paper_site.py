"""A site on paper: its machines and the traffic that people cause."""

from typing import NamedTuple


class Traffic(NamedTuple):
    """The traffic that people cause. Rates are a second, of the whole site.

    Attributes:
        posts: New statuses.
        followers: Followers of an author, on average over the posts.
        mentions: Share of the posts that mention somebody.
        deletes: Share of the posts that are deleted.
        follows: New follows.
        pages: Pages of 30 statuses that are read.
        homes: Share of the pages that are home timelines. The others are profiles.
        matching: Share of the posts that one stream receives.
        reconnects: Connects of one stream in an hour.
    """

    posts: float = 100.0
    followers: float = 10.0
    mentions: float = 0.3
    deletes: float = 0.02
    follows: float = 1.0
    pages: float = 100.0
    homes: float = 0.8
    matching: float = 0.001
    reconnects: float = 1.0

    def times(self, factor: float) -> "Traffic":
        """Return the traffic with ``factor`` times as many posts, follows and pages."""
        return self._replace(posts=self.posts * factor, follows=self.follows * factor, pages=self.pages * factor)


class Layout(NamedTuple):
    """The machines of a site.

    Attributes:
        nodes: Machines with servers.
        processes: Server processes of a node. Two or more have a relay, which alone subscribes to Redis.
        clients: Streams of a node.
        kind: Kind of the streams, as in the unit costs.
        users: Users with a full home timeline.
        days: Days for which statuses are kept.
        shards: Shards for derived data, besides the core. With 0 the core has these data too.
        replicas: Replicas of the core from which the servers hear. With 0 they hear from the core itself.
        shared: Share of each core that other programs use. A process that waits for its core finds more to do at once,
            so its deeds cost less.
        gigabits: Network of a machine, in Gb/s.
        core_gb: Memory of a machine with Redis, in GB.
        node_gb: Memory of a machine with servers, in GB.
    """

    nodes: int = 2
    processes: int = 2
    clients: int = 1000
    kind: str = "user"
    users: int = 100_000
    days: float = 30.0
    shards: int = 0
    replicas: int = 0
    shared: float = 0.0
    gigabits: float = 10.0
    core_gb: float = 64.0
    node_gb: float = 32.0
