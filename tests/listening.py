"""Ends a server of asyncio without losing a connection that is just being accepted."""

import asyncio

ACCEPT_STEPS = 5
"""Iterations of the event loop in which asyncio passes an accepted connection to its callback, with one to spare."""


async def stop_listening(server: asyncio.Server) -> None:
    """Accept no more connections, let those that are being accepted reach their callback, then close the server.

    ``Server.close`` alone drops a connection that asyncio has accepted and not passed on yet: nothing closes its socket
    until the garbage collector finds it, and then a later test fails by the ResourceWarning.
    """
    loop = asyncio.get_running_loop()
    for listening in server.sockets:
        loop.remove_reader(listening)
    for _step in range(ACCEPT_STEPS):
        await asyncio.sleep(0)
    server.close()
