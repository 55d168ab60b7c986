"""The link that signs a user in to the console. The code is in the fragment, which a browser sends to no server."""

from stream_server.config.settings import Config
from stream_server.store.social.sign_ins import SignIn
from stream_server.store.store import Store


async def make_sign_in_link(store: Store, address: str, sign_in: SignIn) -> str:
    """Return a new link to the console of the server at ``address``. It works once, within 15 minutes."""
    return f"{address}/#code={await store.sign_ins.issue(sign_in)}"


async def make_first_link(config: Config, address: str, sign_in: SignIn) -> str:
    """Return a new link, over a connection to Redis of its own: the process that runs the demo may have no store."""
    store = Store(config.redis, timeout_seconds=config.redis_timeout_seconds)
    try:
        return await make_sign_in_link(store, address, sign_in)
    finally:
        await store.close()
