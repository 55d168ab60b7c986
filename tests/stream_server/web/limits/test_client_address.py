"""The address of a client: only trusted proxies are believed."""

import pytest

from stream_server.config.settings import InvalidSetting
from stream_server.web.limits.client_address import UNKNOWN, TrustedProxies
from tests.growth import assert_linear

PROXIES = "10.0.0.0/8, 192.0.2.7, fd00::/8"


@pytest.mark.parametrize(
    ("peer", "forwarded", "found"),
    [
        ("203.0.113.9", [], "203.0.113.9"),
        ("203.0.113.9", ["198.51.100.1"], "203.0.113.9"),  # a stranger invents a header
        ("10.1.2.3", ["198.51.100.1"], "198.51.100.1"),
        ("10.1.2.3", ["198.51.100.1", "10.9.9.9"], "198.51.100.1"),  # what stands before it may be invented
        ("10.1.2.3", ["192.0.2.7", "198.51.100.1", "8.8.8.8"], "198.51.100.1"),
        ("10.1.2.3", ["198.51.100.1:4711"], "198.51.100.1"),
        ("10.1.2.3", ["[2001:db8:1:2:3::4]:80"], "2001:db8:1:2::/64"),
        ("10.1.2.3", ["_hidden"], "10.1.2.3"),
        ("10.1.2.3", ["unknown"], "10.1.2.3"),
        ("10.1.2.3", [], "10.1.2.3"),
        ("::ffff:10.1.2.3", ["198.51.100.1"], "198.51.100.1"),
        ("fd00::1%eth0", ["198.51.100.1"], "198.51.100.1"),
        ("2001:db8:1:2:3::4", [], "2001:db8:1:2::/64"),
        ("2001:db8:1:2:ffff::1", [], "2001:db8:1:2::/64"),
        ("", ["198.51.100.1"], UNKNOWN),
    ],
)
def test_the_client_is_the_nearest_address_that_is_no_proxy(peer: str, forwarded: list[str], found: str) -> None:
    assert TrustedProxies(PROXIES).client_address(peer, forwarded) == found


def test_without_a_setting_nobody_is_believed() -> None:
    assert TrustedProxies("").client_address("10.1.2.3", ["198.51.100.1"]) == "10.1.2.3"


@pytest.mark.parametrize("setting", ["proxy.example.org", "10.0.0.0/99", "10.0.0.1;10.0.0.2"])
def test_a_wrong_setting_is_refused(setting: str) -> None:
    with pytest.raises(InvalidSetting, match="trusted-proxies"):
        TrustedProxies(setting)


@pytest.mark.parametrize(
    ("header", "lines", "addresses"),
    [
        ("X-Forwarded-For", ["8.8.8.8, 198.51.100.1 , 10.9.9.9"], ["10.9.9.9", "198.51.100.1", "8.8.8.8"]),
        ("x-forwarded-for", ["8.8.8.8", "198.51.100.1"], ["198.51.100.1", "8.8.8.8"]),  # the nearest adds the last line
        ("CF-Connecting-IP", ["2001:db8::4"], ["2001:db8::4"]),
        ("X-Forwarded-For", [", ".join(map(str, range(64_000)))], [str(at) for at in range(63_999, 63_979, -1)]),
        ("Forwarded", ["for=8.8.8.8;proto=https, For=198.51.100.1"], ["198.51.100.1", "8.8.8.8"]),
        ("forwarded", ['by=_a; for="[2001:db8::4]:80"', 'for="8.8.8.8:80"'], ["8.8.8.8:80", "[2001:db8::4]:80"]),
        ("Forwarded", ["for=[2001:db8::4]:80"], ["[2001:db8::4]:80"]),
        ("Forwarded", ["for=8.8.8.8, proto=http", "for=_hidden"], ["_hidden", "", "8.8.8.8"]),
        ("Forwarded", ['by="for=8.8.8.8";for=198.51.100.1'], ["198.51.100.1"]),
        ("Forwarded", ['for=198.51.100.1;host="a, for=8.8.8.8"'], ["198.51.100.1"]),
        # A client opens a quotation, so that it ends in what the proxy appends.
        ("Forwarded", ['for=8.8.8.8;x=", for="[2001:db8::4]"'], [""]),
        ("Forwarded", ['for="8.8.8.8, for=198.51.100.1'], [""]),
        ("Forwarded", ['for="8.8.8.8', "for=198.51.100.1"], ["198.51.100.1", ""]),
        ("Forwarded", ["for=8.8.8.8;" * 1000], [""]),
    ],
)  # fmt: skip
def test_a_header_names_addresses_from_the_nearest_proxy_on(
    header: str, lines: list[str], addresses: list[str]
) -> None:
    assert TrustedProxies(PROXIES, header).read_header(lines) == addresses


@pytest.mark.parametrize("header", ["", "X Forwarded", "X-Forwarded-For, Forwarded", "Forwarded:"])
def test_a_wrong_name_of_the_header_is_refused(header: str) -> None:
    with pytest.raises(InvalidSetting, match="forwarded-header"):
        TrustedProxies(PROXIES, header)


@pytest.mark.parametrize("begin", ["", "for=a", 'for="a"', "for="])
def test_blanks_in_forwarded_are_read_in_linear_time(begin: str) -> None:
    proxies = TrustedProxies(PROXIES, "Forwarded")

    def read(size: int) -> None:
        assert proxies.read_header([begin + " " * size + "x"] * 19) == [""] * 19

    assert_linear(read, 4000)
