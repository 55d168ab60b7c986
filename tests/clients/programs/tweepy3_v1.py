"""Use tweepy 3 for v1.1: ``HOST:PORT TOKEN filter|sample [NAME=VALUE,VALUE …]``. tweepy 3 speaks TLS only."""

import json
import sys
from typing import Any

import tweepy

netloc, token, verb, *arguments = sys.argv[1:]


def say(**told: object) -> None:
    """Print one line of JSON for the test."""
    print(json.dumps(told), flush=True)


class Listener(tweepy.StreamListener):
    """Reports each callback of tweepy's stream, with tweepy's own objects."""

    def on_connect(self) -> None:
        """Report that the response head has arrived."""
        say(connected=True)

    def keep_alive(self) -> None:
        """Report a blank line."""
        say(alive=True)

    def on_status(self, status: Any) -> None:
        """Report a status under its text."""
        say(**{status.text: of_status(status)})

    def on_delete(self, status_id: int, user_id: int) -> None:
        """Report a deleted status."""
        say(deleted=[status_id, user_id])

    def on_disconnect(self, notice: dict[str, Any]) -> None:
        """Report the server's notice that it will end the stream."""
        say(disconnected=notice)

    def on_error(self, status_code: int) -> bool:
        """Report a refusal, and do not try again."""
        say(refused=status_code)
        return False

    def on_exception(self, exception: Exception) -> None:
        """Report something that tweepy cannot parse."""
        say(exception=repr(exception))


def of_status(status: Any) -> dict[str, Any]:
    """Return the members of tweepy's own objects."""
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
stream = tweepy.Stream(auth, Listener(), host=netloc, chunk_size=1, timeout=60)
asked = {name: value.split(",") for name, value in (argument.split("=") for argument in arguments)}
if "locations" in asked:
    asked["locations"] = [float(number) for number in asked["locations"]]
getattr(stream, verb)(**asked)
say(ended=True)
