"""Published entries are signed by the scripts, and only with the key of the installation."""

import hashlib
import json
from typing import Any

import redis
from hypothesis import given
from hypothesis import strategies as st

from stream_server.events.bus_signature import BusSignature, lua_pads
from tests.stream_server.store.people import People, new_key, open_store
from tests.waiting import PATIENCE

KEY = b"0123456789abcdef0123456789abcdef"


def signed(message: bytes, key: bytes = KEY) -> bytes:
    """Sign as the scripts should, by the library."""
    inner, outer = (bytes(byte ^ mask for byte in key.ljust(64, b"\0")) for mask in (0x36, 0x5C))
    digits = hashlib.sha1(outer + hashlib.sha1(inner + message).hexdigest().encode()).hexdigest()
    return message[:-1] + b',"mac":"%b"}' % digits.encode()


async def test_scripts_sign_what_they_publish(redis_url: str, raw: "redis.Redis") -> None:
    listener: Any = raw.pubsub(ignore_subscribe_messages=True)  # type: ignore[no-untyped-call] # of the library
    listener.subscribe("events:post", "events:follow")
    listener.get_message(timeout=PATIENCE)
    listener.get_message(timeout=PATIENCE)
    async with open_store(redis_url, bus_key=KEY) as store:
        people = People(store)
        ann, bob = await people.users(2)
        await people.status(ann, "grüße 東京 \\" + "x" * 200)
        await store.follows.follow(ann, bob, new_key())
    for _ in range(2):
        message = listener.get_message(timeout=PATIENCE)
        assert message is not None
        plain = BusSignature(KEY).open(message["data"])
        assert plain is not None
        assert message["data"] == signed(plain)
        assert "wire" in json.loads(message["data"].split(b" ", 4)[4]), "still JSON for a plain listener"
        assert BusSignature(KEY[::-1]).open(message["data"]) is None
    listener.close()


@given(st.binary(max_size=200), st.integers(0, 255), st.data())
def test_a_changed_message_is_refused(body: bytes, byte: int, data: st.DataObject) -> None:
    message = signed(b"1-0 1 post public {" + body + b"}")
    assert BusSignature(KEY).open(message) == b"1-0 1 post public {" + body + b"}"
    at = data.draw(st.integers(0, len(message) - 1))
    changed = message[:at] + bytes([byte]) + message[at + 1 :]
    assert changed == message or BusSignature(KEY).open(changed) is None


def test_short_and_foreign_messages_are_refused() -> None:
    for message in (b"", b"{}", b'"}', b',"mac":"', b'{"mac":"0"}', signed(b"{}", b"other")):
        assert BusSignature(KEY).open(message) is None


def test_pads_have_one_block() -> None:
    assert [text.count("\\") for text in lua_pads(KEY)] == [64, 64]
