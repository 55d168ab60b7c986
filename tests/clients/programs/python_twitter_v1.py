"""Use python-twitter for v1.1 with another host: ``URL TOKEN filter|sample [NAME=VALUE,VALUE …]``."""

import json
import sys
from typing import Any

import twitter

url, token, verb, *arguments = sys.argv[1:]


def say(**told: object) -> None:
    """Print one line of JSON for the test."""
    print(json.dumps(told), flush=True)


class Api(twitter.Api):
    """Also reports what the library hides: that it is connected, and blank lines."""

    def _RequestStream(self, *given: Any, **more: Any) -> Any:  # noqa: N802 - its name
        response = super()._RequestStream(*given, **more)
        lines = response.iter_lines

        def heard() -> Any:
            for line in lines():
                if not line:
                    say(alive=True)
                yield line

        response.iter_lines = heard
        say(connected=response.status_code)
        return response


def of_status(status: twitter.Status) -> dict[str, Any]:
    """Return the members of the library's own objects."""
    repeated = status.retweeted_status
    return {
        "id": status.id,
        "created": status.created_at_in_seconds,
        "user": [status.user.id, status.user.screen_name, status.user.name, status.user.followers_count],
        "hashtags": [tag.text for tag in status.hashtags],
        "mentions": [[user.id, user.screen_name] for user in status.user_mentions],
        "urls": [link.expanded_url for link in status.urls],
        "media": [[medium.type, medium.media_url] for medium in status.media or []],
        "coordinates": status.coordinates,
        "place": status.place and status.place["full_name"],
        "reply": [status.in_reply_to_status_id, status.in_reply_to_user_id, status.in_reply_to_screen_name],
        "lang": status.lang,
        "repeated": repeated and [repeated.id, repeated.text, repeated.user.screen_name],
        "quoted": status.quoted_status and status.quoted_status.text,
    }


def tell(message: dict[str, Any]) -> None:
    """Report a status under its text, and any other message unchanged."""
    if "text" in message:
        status = twitter.Status.NewFromJsonDict(message)
        say(**{status.text: of_status(status)})
    else:
        say(**message)


api = Api("key", "secret", token, "secret", stream_url=url + "/1.1", timeout=90)
asked = {name: value.split(",") for name, value in (argument.split("=") for argument in arguments)}
stream = api.GetStreamFilter(stall_warnings=True, **asked) if verb == "filter" else api.GetStreamSample()
try:
    for one in stream:
        tell(one)
except twitter.TwitterError as error:
    say(refused=str(error))
