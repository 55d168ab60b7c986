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


def search(query: str, most: int) -> None:
    """Report all Tweets that tweepy's paginator finds, and the objects of the first page."""
    wanted = {"tweet_fields": ["created_at", "entities", "referenced_tweets"], "expansions": ["author_id"]}
    pages = list(tweepy.Paginator(api.search_recent_tweets, query, max_results=most, **wanted))
    tweets = [{"text": tweet.text, **of_tweet(tweet)} for page in pages for tweet in page.data or []]
    say(answer={"found": tweets, "metas": [page.meta for page in pages], **of_includes(pages[0].includes)})


def count(query: str, granularity: str, *bounds: str) -> None:
    """Report the counts of one answer that are not 0. ``bounds`` are further arguments, such as ``since_id=5``."""
    more = dict(bound.split("=") for bound in bounds)
    response = api.get_recent_tweets_count(query, granularity=granularity, **more)
    ends = [bucket["end"] for bucket in response.data]
    gapless = [bucket["start"] for bucket in response.data[1:]] == ends[:-1]
    counts = [bucket["tweet_count"] for bucket in response.data if bucket["tweet_count"]]
    say(answer={"counts": counts, "gapless": gapless, "meta": response.meta})


client = Listener(token)
api = tweepy.Client(token)
for each in (client, api):
    each.session.mount("https://api.twitter.com", Loopback())
if verb == "search":
    search(arguments[0], int(arguments[1]))
elif verb == "count":
    count(*arguments)
elif verb in {"filter", "sample"}:
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
