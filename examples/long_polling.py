"""Follow a stream by long polling, with only the standard library.

    python long_polling.py http://127.0.0.1:8000 $TOKEN track=coffee

The server answers as soon as an event matches, or with no events after `wait` seconds. Each answer carries a cursor.
Send it as `since` with the next request, and no event is lost, however long the pause.
"""

import json
import sys
import urllib.error
import urllib.parse
import urllib.request
from typing import Any


def poll(url: str, token: str, parameters: dict[str, str]) -> Any:
    """Send one request and return its answer: ``{"events": […], "cursor": …, "more": …}``."""
    query = urllib.parse.urlencode({**parameters, "wait": "25"})
    request = urllib.request.Request(f"{url}/v1/events?{query}", headers={"Authorization": f"Bearer {token}"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)


def follow(url: str, token: str, parameters: dict[str, str]) -> None:
    """Print each post, without end."""
    while True:
        answer = poll(url, token, parameters)
        parameters["since"] = answer["cursor"]
        for event in answer["events"]:
            if event["kind"] == "post":
                print(f"@{event['status']['login']}: {event['status']['message']}", flush=True)


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(f"usage: {sys.argv[0]} URL TOKEN NAME=VALUE …")
    server, jwt, *rest = sys.argv[1:]
    try:
        follow(server, jwt, dict(pair.split("=", 1) for pair in rest))
    except KeyboardInterrupt:
        pass
    except urllib.error.HTTPError as refused:
        sys.exit(f"refused: {refused.code} {refused.read().decode()}")
