"""Password hashes: correct and wrong passwords, equal work for unknown users, and a bounded queue."""

import asyncio
import threading
from collections.abc import Iterator

import pytest

from stream_server.errors import Unavailable
from stream_server.security import passwords
from stream_server.security.passwords import Passwords


@pytest.fixture
def cheap() -> Iterator[Passwords]:
    """Hashing with the cheapest parameters."""
    made = Passwords(8)
    yield made
    made.close()


async def test_only_the_right_password_matches_its_hash(cheap: Passwords) -> None:
    first, second = await cheap.hash("correct horse"), await cheap.hash("correct horse")
    assert first != second
    assert first.startswith("$argon2id$")
    assert await cheap.verify(first, "correct horse")
    assert not await cheap.verify(first, "Correct horse")


@pytest.mark.parametrize("hashed", [None, "", "no hash", "$argon2id$broken"])
async def test_without_a_usable_hash_every_password_is_wrong(cheap: Passwords, hashed: str | None) -> None:
    assert not await cheap.verify(hashed, "the password of nobody")


async def test_an_unknown_user_costs_the_same_work(cheap: Passwords, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []

    def refuse(hashed: str, password: str) -> bool:
        seen.append(hashed)
        return False

    monkeypatch.setattr(cheap, "_verify_hash", refuse)
    known = await cheap.hash("correct horse")
    await cheap.verify(known, "x")
    await cheap.verify(None, "x")
    assert [text.rsplit("$", 2)[0] for text in seen] == [known.rsplit("$", 2)[0]] * 2


async def test_a_full_queue_refuses_more_hashes(cheap: Passwords) -> None:
    hold = threading.Event()
    held = [asyncio.create_task(cheap.thread.run(hold.wait)) for _ in range(passwords.MAX_PENDING_HASHES)]
    await asyncio.sleep(0)  # each task starts and takes its place in the queue
    with pytest.raises(Unavailable) as caught:
        await cheap.hash("correct horse")
    assert caught.value.retry_after
    hold.set()
    assert all(await asyncio.gather(*held))
    assert await cheap.hash("correct horse")


async def test_a_cancelled_hash_frees_its_place_in_the_queue(cheap: Passwords) -> None:
    hold = threading.Event()
    held = [asyncio.create_task(cheap.thread.run(hold.wait)) for _ in range(passwords.MAX_PENDING_HASHES)]
    await asyncio.sleep(0)  # each task starts and takes its place in the queue
    held[-1].cancel()
    await asyncio.gather(held[-1], return_exceptions=True)
    waiting = asyncio.create_task(cheap.hash("correct horse"))
    hold.set()
    assert await waiting
    await asyncio.gather(*held[:-1])
