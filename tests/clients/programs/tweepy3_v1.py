"""tweepy 3 as it is used for v1.1, ``HOST:PORT TOKEN filter|sample [NAME=VALUE,VALUE …]``; it speaks TLS only."""

import json
import sys
from typing import Any

import tweepy

netloc, token, verb, *arguments = sys.argv[1:]


def say(**told: object) -> None:
    """One line for the test."""
    print(json.dumps(told), flush=True)


class Listener(tweepy.StreamListener):
    """Tells all that tweepy makes of the stream, as tweepy's own objects say it."""

    def on_connect(self) -> None:
        """The head of the answer has come."""
        say(connected=True)

    def keep_alive(self) -> None:
        """A blank line has come."""
        say(alive=True)

    def on_status(self, status: Any) -> None:
        """A status has come: told under its text."""
        say(**{status.text: of_status(status)})

    def on_delete(self, status_id: int, user_id: int) -> None:
        """A status is gone."""
        say(deleted=[status_id, user_id])

    def on_disconnect(self, notice: dict[str, Any]) -> None:
        """The server is about to end the stream."""
        say(disconnected=notice)

    def on_error(self, status_code: int) -> bool:
        """It was refused, and is not to try again."""
        say(refused=status_code)
        return False

    def on_exception(self, exception: Exception) -> None:
        """Something came that tweepy cannot read."""
        say(exception=repr(exception))


def of_status(status: Any) -> dict[str, Any]:
    """What tweepy's own objects say."""
    repeated = getattr(status, "retweeted_status", None)
    place = status.place
    return {
        "id": status.id,
        "created": status.created_at.isoformat(),
        "source": status.source,
        "user": [status.user.id, status.user.screen_name, status.user.name, status.user.followers_count],
        "signup": status.user.created_at.isoformat(),
        "hashtags": [tag["text"] for tag in status.entities["hashtags"]],
        "mentions": [[user["id"], user["screen_name"]] for user in status.entities["user_mentions"]],
        "coordinates": status.coordinates and status.coordinates["coordinates"],
        "place": place and [place.full_name, place.bounding_box.origin(), place.bounding_box.corner()],
        "repeated": repeated and [repeated.id, repeated.text, repeated.user.screen_name],
    }


auth = tweepy.OAuthHandler("key", "secret")
auth.set_access_token(token, "secret")
stream = tweepy.Stream(auth, Listener(), host=netloc, chunk_size=1, timeout=20)
asked = {name: value.split(",") for name, value in (argument.split("=") for argument in arguments)}
if "locations" in asked:
    asked["locations"] = [float(number) for number in asked["locations"]]
getattr(stream, verb)(**asked)
say(ended=True)
