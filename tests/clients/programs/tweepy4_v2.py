"""Use tweepy 4 for v2 with another host, through an adapter of requests: ``URL TOKEN VERB …``."""

import json
import sys
from typing import Any

import requests
import tweepy

url, token, verb, *arguments = sys.argv[1:]


def say(**told: object) -> None:
    """Print one line of JSON for the test."""
    print(json.dumps(told), flush=True)


class Loopback(requests.adapters.HTTPAdapter):
    """Sends requests for Twitter to the server under test."""

    def send(self, request: Any, **more: Any) -> Any:
        """Send the request unchanged, except for the host."""
        request.url = request.url.replace("https://api.twitter.com", url)
        return super().send(request, **more)


class Listener(tweepy.StreamingClient):
    """Reports each callback of tweepy's stream, with tweepy's own objects."""

    def on_connect(self) -> None:
        """Report that the response head has arrived."""
        say(connected=True)

    def on_keep_alive(self) -> None:
        """Report an empty line."""
        say(alive=True)

    def on_response(self, response: Any) -> None:
        """Report a message under its text."""
        tweet = response.data
        if tweet is not None:
            say(**{tweet.text: {**of_tweet(tweet), **of_includes(response.includes), "rules": of_rules(response)}})

    def on_errors(self, errors: Any) -> None:
        """Report errors inside a message."""
        say(errors=errors)

    def on_closed(self, response: Any) -> None:
        """Report that the server ended the stream."""
        say(closed=True)
        self.disconnect()

    def on_request_error(self, status_code: int) -> None:
        """Report a refusal."""
        say(refused=status_code)
        self.disconnect()

    def on_exception(self, exception: Exception) -> None:
        """Report something that tweepy cannot parse."""
        say(exception=repr(exception))


def of_tweet(tweet: Any) -> dict[str, Any]:
    """Return the members of a Tweet."""
    tags = [tag["tag"] for tag in (tweet.entities or {}).get("hashtags", [])]
    referenced = [[one.type, one.id] for one in tweet.referenced_tweets or []]
    return {
        "id": tweet.id,
        "author": tweet.author_id,
        "created": tweet.created_at and tweet.created_at.isoformat(),
        "tags": tags,
        "referenced": referenced,
    }


def of_includes(includes: Any) -> dict[str, Any]:
    """Return the expanded objects of a message."""
    return {
        "users": [[user.id, user.username, user.name] for user in includes.get("users", [])],
        "places": [place.full_name for place in includes.get("places", [])],
        "media": [[media.type, media.url] for media in includes.get("media", [])],
        "tweets": [other.text for other in includes.get("tweets", [])],
    }


def of_rules(response: Any) -> list[list[str]]:
    """Return the rules that matched."""
    return [[rule.id, rule.tag] for rule in response.matching_rules]


def tell(response: Any) -> None:
    """Report the answer to a request about rules."""
    rules = [[rule.id, rule.value, rule.tag] for rule in response.data or []]
    say(answer={"rules": rules, "meta": response.meta, "errors": response.errors})


client = Listener(token)
client.session.mount("https://api.twitter.com", Loopback())
if verb in {"filter", "sample"}:
    fields = {name: value.split(",") for name, value in (argument.split("=") for argument in arguments)}
    getattr(client, verb)(**fields)
elif verb == "add":
    tell(client.add_rules([tweepy.StreamRule(*argument.split("|")) for argument in arguments]))
elif verb == "try":
    tell(client.add_rules([tweepy.StreamRule(argument) for argument in arguments], dry_run=True))
elif verb == "get":
    tell(client.get_rules())
elif verb == "delete":
    tell(client.delete_rules(arguments))
