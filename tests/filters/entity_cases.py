"""Cases of our own for each section of twitter-text's conformance suite: texts, and what is found in them."""

from typing import Any

EXTRACTED: dict[str, list[tuple[str, Any]]] = {
    "mentions": [
        ("tea with @ada, (@Bob_2) and .@cat!", ["ada", "Bob_2", "cat"]),
        ("RT@ada \uff20bob \u6771\u4eac@cat", ["ada", "bob", "cat"]),
        ("me@example.invalid _@ada &@bob @ @-", []),
        (f"@{'a' * 20} @ada@bob", ["a" * 20]),
    ],
    "mentions_with_indices": [
        ("\U0001f600 @ada and @bob", [
            {"screen_name": "ada", "indices": [2, 6]}, {"screen_name": "bob", "indices": [11, 15]},
        ]),
    ],
    "mentions_or_lists_with_indices": [
        ("@ada/tea-lovers and @bob", [
            {"screen_name": "ada", "list_slug": "/tea-lovers", "indices": [0, 15]},
            {"screen_name": "bob", "list_slug": "", "indices": [20, 24]},
        ]),
    ],
    "replies": [("@ada yes", "ada"), ("  \uff20ada yes", "ada"), (".@ada yes", None), ("yes @ada", None)],
    "urls": [
        ("see http://example.com/a_(b), www.example.org. and ex.co.uk!", [
            "http://example.com/a_(b)", "www.example.org", "ex.co.uk",
        ]),
        ("1.5 a.b me@example.com ...", []),
    ],
    "urls_with_indices": [("\U0001f600 example.com", [{"url": "example.com", "indices": [2, 13]}])],
    "urls_with_directional_markers": [
        ("\u202ahttp://example.com/a\u202c b", [{"url": "http://example.com/a", "indices": [1, 21]}]),
    ],
    "tco_urls_with_params": [("https://t.co/AbC123?x=1 https://t.co/z", ["https://t.co/AbC123?x=1", "https://t.co/z"])],
    "hashtags": [
        ("#tea, #Tea_2 (#\u8336) \uff03caf\u00e9", ["tea", "Tea_2", "\u8336", "caf\u00e9"]),
        ("#12 a#b &#60; # #_ example.com/#tea", []),
    ],
    "hashtags_from_astral": [("\U0001f375 #\U00020021x", ["\U00020021x"])],
    "hashtags_with_indices": [("\U0001f600 #tea", [{"hashtag": "tea", "indices": [2, 6]}])],
    "cashtags": [
        ("$TEA, $tea.L and $A_b", ["TEA", "tea.L", "A_b"]),
        ("$5 US$ $TOOLONGX a$TEA $T3A", []),
    ],
    "cashtags_with_indices": [("\U0001f600 $TEA", [{"cashtag": "TEA", "indices": [2, 6]}])],
}  # fmt: skip

VALID: dict[str, list[tuple[str, bool]]] = {
    "usernames": [("@ada", True), (f"@{'a' * 20}", True), (f"@{'a' * 21}", False), ("ada", False), ("@a-b", False)],
    "lists": [
        ("@ada/tea", True), ("@ada/tea-2_x", True), ("@ada", False), ("@ada/2tea", False), ("ada/tea", False),
        (f"@ada/{'t' * 26}", False),
    ],
    "hashtags": [("#tea", True), ("#t1", True), ("#\u8336", True), ("#12", False), ("tea", False), ("#tea-x", False)],
    "urls": [
        ("http://example.com/a?b=c#d", True), ("https://sub.example.org:8080/", True), ("http://-example.com", False),
        ("ftp://example.com", False), ("http://exa mple.com", False),
    ],
    "urls_without_protocol": [("example.com/a", True), ("http://example.com", True), ("example", False)],
}  # fmt: skip
