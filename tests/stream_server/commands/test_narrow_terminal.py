"""Lists on a terminal of 80 columns."""

import io
from datetime import UTC, datetime

from rich.console import Console

from stream_server.commands.subscriptions import list_of
from stream_server.wire.subscriptions import Subscription, SubscriptionPart, Webhook

CURSOR = "1795197600000-12.48211034"
NOW = datetime.now(UTC)
SHARED = Subscription(
    name="a-name-of-thirty-characters-30", parameters={"track": "tea " * 40}, cursor=CURSOR, created=NOW, used=NOW,
    behind=1_204_331, behind_seconds=604_800, kept_seconds=86_400,
    parts=tuple(SubscriptionPart(cursor=CURSOR, behind=1, worker=f"worker-{number % 5}") for number in range(64)),
    deliver=Webhook(url="https://example.com/" + "x" * 100, batch=100, state="failing"),
)  # fmt: skip
IDLE = Subscription(name="b", parameters={"track": "tea"}, cursor=CURSOR, created=NOW, used=NOW, behind=0)


def test_subscriptions_fit_a_narrow_terminal() -> None:
    """A cursor is whole, because a user copies it."""
    console = Console(width=80, file=io.StringIO(), soft_wrap=True, highlight=False)
    console.print(list_of([SHARED, IDLE]))
    assert isinstance(console.file, io.StringIO)
    lines = console.file.getvalue().splitlines()
    assert max(map(len, lines)) <= 80
    assert sum(f"at {CURSOR}" in line for line in lines) == 2
    assert sum("1,204,331 entries and 604,800 s behind, kept for" in line for line in lines) == 1
    assert [line.split() for line in lines[-3:]] == [["b", "track=tea"], ["at", CURSOR], ["not", "behind"]]
