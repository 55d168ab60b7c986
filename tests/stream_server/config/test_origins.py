"""Origins that a person writes in other ways than browsers are meant all the same, or refused with the reason."""

import pytest

from stream_server.config.config import load
from stream_server.config.settings import InvalidSetting


@pytest.mark.parametrize(
    ("written", "sent"),
    [
        ("", ""),
        ("*", "*"),
        (" * ", "*"),
        ("https://app.example.org", "https://app.example.org"),
        ("HTTPS://App.Example.ORG", "https://app.example.org"),
        ("https://app.example.org/", "https://app.example.org"),
        ("https://app.example.org:443", "https://app.example.org"),
        ("http://app.example.org:80/", "http://app.example.org"),
        ("http://app.example.org:443", "http://app.example.org:443"),
        ("http://localhost:03000", "http://localhost:3000"),
        ("https://Bücher.example", "https://xn--bcher-kva.example"),
        ("https://пример.рф:8443", "https://xn--e1afmkfd.xn--p1ai:8443"),
        ("http://[0:0:0:0:0:0:0:1]:8000", "http://[::1]:8000"),
        ("http://127.0.0.1:8000", "http://127.0.0.1:8000"),
        ("chrome-extension://abcdefghijklmnop", "chrome-extension://abcdefghijklmnop"),
        ("capacitor://localhost", "capacitor://localhost"),
        ("https://a.example, https://A.example/ ,, https://b.example,", "https://a.example,https://b.example"),
        ("https://my_app.example", "https://my_app.example"),
    ],
)
def test_an_origin_becomes_what_browsers_send(written: str, sent: str) -> None:
    assert load({"cors_origins": written}, {}).cors_origins == sent


@pytest.mark.parametrize(
    ("written", "reason"),
    [
        ("app.example.org", "needs a scheme, such as https://app.example.org"),
        ("localhost:3000", "needs a scheme, such as https://localhost:3000"),
        ("//app.example.org", "needs a scheme"),
        ("null", "cannot be allowed"),
        ("https://*.example.org", "has a wildcard"),
        ("https://a.example, *", "has a wildcard"),
        ("https://app.example.org/app", "without a path"),
        ("https://app.example.org?x=1", "without a path"),
        ("https://app.example.org#x", "without a path"),
        ("https://ada:hunter22@app.example.org", "without a path or a user"),
        ("https://app.example.org:port", "is no origin"),
        ("https://app.example.org:99999", "is no origin"),
        ("https://", "has no valid host"),
        ("https://a.example https://b.example", "without a path"),
        ("https://a.example b.example", "has no valid host"),
        ("https://.example", "has no valid host"),
        ("https://127.1", "has no valid host"),
        ("https://[::1", "is no origin"),
        ("https://\u2488com", "has no valid host"),
    ],
)
def test_what_no_browser_sends_is_refused_with_the_reason(written: str, reason: str) -> None:
    with pytest.raises(InvalidSetting) as refused:
        load({"cors_origins": written}, {})
    assert str(refused.value).startswith("--cors-origins (STREAM_SERVER_CORS_ORIGINS): ")
    assert reason in str(refused.value)
    assert "hunter22" not in str(refused.value)
