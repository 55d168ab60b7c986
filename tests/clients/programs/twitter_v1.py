"""Use sixohsix' twitter for v1.1: ``HOST:PORT TOKEN filter|sample [NAME=VALUE …]``. It speaks TLS only.

The library hides blank lines, but hangs up if none arrives for two seconds.
"""

import json
import sys

from twitter import OAuth, TwitterHTTPError, TwitterStream

netloc, token, verb, *arguments = sys.argv[1:]


def say(**told: object) -> None:
    """Print one line of JSON for the test."""
    print(json.dumps(told), flush=True)


stream = TwitterStream(
    domain=netloc, auth=OAuth(token, "secret", "key", "secret"), timeout=0.5, heartbeat_timeout=60, secure=True
)
asked = dict(argument.split("=") for argument in arguments)
try:
    messages = getattr(stream.statuses, verb)(**asked)
    say(connected=True)
    for message in messages:
        say(**message)
except TwitterHTTPError as error:
    say(refused=error.e.code)
