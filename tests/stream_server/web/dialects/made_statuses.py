"""Statuses with all members of the v1.1 format, as Twitter's API answered them. Users and texts are made up."""

from typing import Any

Json = dict[str, Any]

SIZES = {name: {"w": 100, "h": 100, "resize": "fit"} for name in ("thumb", "small", "medium", "large")}


def made_statuses() -> list[Json]:
    """Return a status with each kind of entity, one with a picture, a reply, and a repost."""
    ada, bob = _user("11", "ada", "Ada"), _user("12", "bob_at_sea", "Bob")
    home = {"url": "https://example.com/", "expanded_url": "https://example.com/", "display_url": "example.com"}
    bob |= {"url": home["url"], "entities": bob["entities"] | {"url": {"urls": [home | {"indices": [0, 20]}]}}}
    words = "Tea at @bob_at_sea's: #tea and #寿司 😀 for $TEA, see https://t.co/a1 and https://t.co/b2"
    plain = _status("501", ada, words, _entities(words, {"bob_at_sea": "12"}))
    seen = "The harbour this morning https://t.co/c3"
    picture = _status("502", bob, seen, _entities(seen, {}))
    (link,) = picture["entities"].pop("urls")
    picture["entities"] |= {"urls": [], "media": [_media("901", link)]}
    said = "@ada with #milk, of course"
    reply = _status("503", bob, said, _entities(said, {"ada": "11"}))
    reply |= _numbered("in_reply_to_status_id", "501") | _numbered("in_reply_to_user_id", "11")
    reply["in_reply_to_screen_name"] = "ada"
    shown = f"RT @ada: {words}"
    repost = _status("504", bob, shown, _entities(shown, {"ada": "11", "bob_at_sea": "12"}))
    return [plain, picture, reply, repost | {"retweeted_status": plain}]


def _numbered(name: str, text: str | None) -> Json:
    return {name: text and int(text), f"{name}_str": text}


def _status(number: str, user: Json, text: str, entities: Json) -> Json:
    return {
        "created_at": "Sat Nov 21 22:00:00 +0000 2026", **_numbered("id", number), "text": text,
        "source": '<a href="https://example.com/app" rel="nofollow">An app</a>', "truncated": False,
        **_numbered("in_reply_to_status_id", None), **_numbered("in_reply_to_user_id", None),
        "in_reply_to_screen_name": None, "user": user, "geo": None, "coordinates": None, "place": None,
        "contributors": None, "retweet_count": 3, "favorite_count": 5, "entities": entities, "favorited": False,
        "retweeted": False, "lang": "en", **({"possibly_sensitive": False} if entities["urls"] else {}),
    }  # fmt: skip


def _user(number: str, login: str, name: str) -> Json:
    flags = (
        "protected", "geo_enabled", "verified", "contributors_enabled", "is_translator", "is_translation_enabled",
        "profile_background_tile", "profile_use_background_image", "default_profile", "default_profile_image",
        "following", "follow_request_sent", "notifications",
    )  # fmt: skip
    colors = ("background", "link", "sidebar_border", "sidebar_fill", "text")
    pictures = ("profile_background_image_url", "profile_image_url")
    return {
        **_numbered("id", number), "name": name, "screen_name": login, "location": "by the sea",
        "description": "likes tea", "url": None, "entities": {"description": {"urls": []}}, "followers_count": 40,
        "friends_count": 30, "listed_count": 2, "created_at": "Mon Jan 05 08:00:00 +0000 2026", "favourites_count": 7,
        "utc_offset": None, "time_zone": None, "statuses_count": 90, "lang": "en", **dict.fromkeys(flags, False),
        **{f"profile_{name}_color": "1DA1F2" for name in colors}, **dict.fromkeys(pictures, "http://example.com/p.png"),
        **{f"{name}_https": "https://example.com/p.png" for name in pictures},
    }  # fmt: skip


def _entities(text: str, people: dict[str, str]) -> Json:
    """Return the entities of a text, whose words are apart enough to find each by its first character."""

    def placed(word: str) -> Json:
        return {"indices": [text.index(word), text.index(word) + len(word)]}

    tags, symbols, links = ("tea", "寿司", "milk"), ("TEA",), ("https://t.co/a1", "https://t.co/b2", "https://t.co/c3")
    return {
        "hashtags": [{"text": tag, **placed(f"#{tag}")} for tag in tags if f"#{tag}" in text],
        "symbols": [{"text": symbol, **placed(f"${symbol}")} for symbol in symbols if f"${symbol}" in text],
        "user_mentions": [
            {"screen_name": login, "name": login.title(), **_numbered("id", number), **placed(f"@{login}")}
            for login, number in people.items()
        ],
        "urls": [
            {"url": link, "expanded_url": "https://example.com/x", "display_url": "example.com/x", **placed(link)}
            for link in links
            if link in text
        ],
    }


def _media(number: str, link: Json) -> Json:
    """Return a picture at a link."""
    addresses = {"media_url": "http://example.com/a.jpg", "media_url_https": "https://example.com/a.jpg"}
    return {**_numbered("id", number), **link, **addresses, "type": "photo", "sizes": SIZES}
