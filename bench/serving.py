"""Serves the apps of the small servers that the benchmark compares with."""

import asyncio

from aiohttp import web


async def serve_forever(app: web.Application) -> None:
    """Serve on a free port, and print it. Runs until the process ends."""
    runner = web.AppRunner(app, access_log=None, handler_cancellation=True)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, backlog=4096).start()
    print(f"listening on http://127.0.0.1:{runner.addresses[0][1]}", flush=True)
    await asyncio.Event().wait()
