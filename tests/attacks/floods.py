"""Attacks by number: many requests, connections and streams. Each returns what it achieved."""

import asyncio
import time
import uuid
from collections import Counter
from collections.abc import Awaitable, Callable

from tests.attacks.arena import ATTACKING_ADDRESS
from tests.end_to_end.api import Answer, Api, mint

FROM_ATTACKER = {"X-Forwarded-For": ATTACKING_ADDRESS}

PARALLEL = 20


async def repeat(seconds: float, send: Callable[[], Awaitable[Answer]], parallel: int = PARALLEL) -> Counter[int]:
    """Send requests in parallel for some seconds. Return the number of answers by status."""
    seen: Counter[int] = Counter()
    end = time.monotonic() + seconds

    async def work() -> None:
        while time.monotonic() < end:
            seen[(await send()).status] += 1

    await asyncio.gather(*(work() for _ in range(parallel)))
    return seen


async def guess_passwords(api: Api) -> int:
    """Guess the password of one account. Return the number of guesses that were tried."""
    login = "v" + uuid.uuid4().hex[:12]
    await api.sign_up(login)
    body = {"login": login, "password": "a wrong password"}
    seen = await repeat(1, lambda: api.call("POST", "/v1/sessions", json=body, headers=FROM_ATTACKER))
    return seen[401]


async def sign_up(api: Api) -> int:
    """Create accounts. Return how many."""

    async def send() -> Answer:
        login = "f" + uuid.uuid4().hex[:12]
        body = {"login": login, "name": login, "email": f"{login}@example.com", "password": "correct horse"}
        return await api.call("POST", "/v1/users", json=body, headers=FROM_ATTACKER)

    return (await repeat(1, send))[201]


async def ask_for_names(api: Api) -> int:
    """Ask which e-mail addresses have accounts. Return the number of answers."""
    path = "/v1/users/available?email=someone@example.com"
    return (await repeat(1, lambda: api.call("GET", path, headers=FROM_ATTACKER)))[200]


async def fill_the_log(api: Api) -> int:
    """Write 1,000 large statuses, or as many as are accepted. Return how many."""
    uid = await api.user()
    body = {"message": "x" * 280, "meta": {"filler": "x" * 4000}}
    token, seen = mint(uid), Counter[int]()
    for _ in range(1000 // PARALLEL):
        calls = (
            api.call("POST", "/v1/statuses", token=token, json=body, headers=FROM_ATTACKER) for _ in range(PARALLEL)
        )
        seen.update(answer.status for answer in await asyncio.gather(*calls))
        if seen[429]:
            break
    return seen[201]


async def fill_redis(api: Api) -> int:
    """Let eight users write all that they may in five minutes, largest first. Return how many writes Redis refused."""
    uids = [await api.user() for _ in range(8)]
    body = {"message": "x" * 280, "meta": {"filler": "x" * 4000}}
    liked = (await api.done("POST", "/v1/statuses", token=mint(uids[0]), json=body, headers=FROM_ATTACKER))["id"]
    seen = Counter[int]()

    async def write(uid: str) -> None:
        token = mint(uid)
        for number in range(1500):
            headers = {**FROM_ATTACKER, "Idempotency-Key": f"key-{number:060d}"}
            answers = [
                await api.call("POST", "/v1/statuses", token=token, json=body, headers=headers),
                await api.call("PUT" if number % 2 else "DELETE", f"/v1/users/me/likes/{liked}", token=token),
            ]
            seen.update(answer.status for answer in answers)
            if any(answer.status in {429, 503} for answer in answers):
                return

    await asyncio.gather(*map(write, uids))
    return seen[503]


async def open_streams(api: Api) -> int:
    """Open 100 streams of one user. Return how many stay open."""
    uid = await api.user()
    headers = {"Authorization": f"Bearer {mint(uid)}", **FROM_ATTACKER}
    answers = [await api.session.get(f"/v1/stream?track=tea{number}", headers=headers) for number in range(100)]
    listed = await api.done("GET", "/v1/streams", token=mint(uid), headers=FROM_ATTACKER)
    for answer in answers:
        answer.close()
    return len(listed["streams"])


async def poll(api: Api) -> int:
    """Let 100 long polls of one user wait. Return how many were answered."""
    uid = await api.user()
    path = "/v1/events?track=nothing&wait=2"
    calls = (api.call("GET", path, token=mint(uid), headers=FROM_ATTACKER) for _ in range(100))
    return Counter(answer.status for answer in await asyncio.gather(*calls))[200]


async def preview(api: Api) -> int:
    """Run 30 previews of one user at once. Return how many ran."""
    uid = await api.user()
    body = {"rule": "honest OR nobody", "minutes": 60}
    calls = (
        api.call("POST", "/v1/rules/preview", token=mint(uid), json=body, headers=FROM_ATTACKER) for _ in range(30)
    )
    return Counter(answer.status for answer in await asyncio.gather(*calls))[200]


async def write_to_a_stranger(api: Api) -> int:
    """Put a stranger into a group, and send the stranger messages. Return what the stranger's stream received."""
    eve, victim = await api.user(), await api.user()
    stream = await api.stream({}, uid=victim, path="/v1/stream/user")
    token = mint(eve)
    group = await api.done("POST", "/v1/groups", token=token, json={"name": "spam", "kind": "private"})
    await api.call("PUT", f"/v1/groups/{group['id']}/members/{victim}", token=token)
    talk = await api.done("POST", "/v1/talks", token=token, json={"people": [victim]})
    for _ in range(20):
        await api.call("POST", f"/v1/talks/{talk['id']}/messages", token=token, json={"message": "buy"})
    await api.post(victim, "the end")
    await stream.until(lambda s: any(event["kind"] == "post" for event in s.events))
    await stream.close()
    return len(stream.events) - 1


async def slow_sockets(api: Api) -> int:
    """Hold 500 sockets: unfinished heads, unfinished bodies, and answers that are not read. Return how many opened."""
    host, _, port = api.server.address.removeprefix("http://").rpartition(":")
    token, writers = mint(await api.user()), []
    requests = (
        b"GET /v1/users/me HTTP/1.1\r\nHost: a\r\nX-Slow: ",
        b"POST /v1/users HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 900\r\n\r\n{",
        f"GET /v1/stream?firehose=true HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {token}\r\n\r\n".encode(),
    )
    for number in range(500):
        _, writer = await asyncio.open_connection(host, int(port), limit=1024)
        writer.write(requests[number % len(requests)])
        writers.append(writer)
    for _ in range(4):
        await asyncio.sleep(0.5)  # the attack lasts two seconds, and sends a byte now and then
        for writer in writers[:300]:
            writer.write(b"x")
    for writer in writers:
        writer.close()
    return len(writers)
