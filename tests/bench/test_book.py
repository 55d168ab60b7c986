"""The yardstick of posts and home pages does what the book's program does."""

import json

from redis.asyncio import Redis

from bench.book_server import PAGE, create_user, follow_user, post_status, read_page
from tests.waiting import PATIENCE


async def test_a_post_comes_to_the_homes_of_the_followers_and_is_published(redis_url: str) -> None:
    """A follower's page has the newest posts first, and nobody else gets them."""
    async with Redis.from_url(redis_url) as redis, redis.pubsub(ignore_subscribe_messages=True) as heard:
        for uid in ("1", "2", "3"):
            await create_user(redis, uid, f"user{uid}")
        await follow_user(redis, "2", ["1"])
        await heard.subscribe("book:statuses")
        assert await post_status(redis, "unknown", "hello") is None
        for number in range(PAGE + 1):
            assert await post_status(redis, "1", f"hello {number}") is not None
        page = await read_page(redis, "book:home:2")
        assert [row["message"] for row in page] == [f"hello {number}" for number in range(PAGE, 0, -1)]
        assert {row["login"] for row in page} == {"user1"}
        assert await read_page(redis, "book:home:3") == []
        message = None
        while message is None:
            message = await heard.get_message(timeout=PATIENCE)
        assert json.loads(message["data"])["message"] == "hello 0"
