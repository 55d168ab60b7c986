"""Redis URLs: which are valid, which the configuration refuses, and that no message repeats a password."""

import pytest

from stream_server.config import config
from stream_server.config.settings import InvalidSetting
from stream_server.store.redis import address
from stream_server.store.redis.address import InvalidRedisUrl
from stream_server.store.redis.client import RedisClient

SECRET = "hunter22"

GOOD = (
    "redis://localhost", "redis://:hunter22@10.0.0.5:6379/3", "rediss://u:hunter22@cache.example.org", "redis://[::1]:7000",
    "redis:///2", "unix:///run/redis.sock", "unix://u@/run/redis.sock?password=hunter22&db=1",
    "redis+sentinel://a:26379,b,c:1/service", "rediss+sentinel://u:hunter22@a/service/1?ssl_ca_certs=/ca.pem",
    "redis+cluster://a:7000,b,[::1]:7001", "redis+cluster://u:hunter22@a/0", "redis+cluster://:hunter22@a,b/",
    "rediss+cluster://u:hunter22@a?ssl_ca_certs=/ca.pem&ssl_check_hostname=no",
    "rediss://localhost?ssl_ca_certs=/ca.pem&ssl_cert_reqs=required&ssl_check_hostname=no", "redis://localhost?db=2",
)  # fmt: skip

BAD = {
    "http://localhost": "begin with",
    "localhost:6379": "begin with",
    "redis://:hun/ter22@localhost": "host:port",
    "redis://localhost:hunter22": "host:port",
    "redis://localhost:70000": "host:port",
    "redis://u:hunter22@:6379": "host:port",
    "redis://localhost/hunter22": "database",
    "redis://[hunter22": "not a valid URL",
    "unix://": "a socket",
    "redis+sentinel://a:26379,b:26379": "a service",
    "redis+sentinel:///service": "Sentinels",
    "redis+sentinel://a,,b/service": "host:port",
    "redis+sentinel://u:hunter22@a:x/service": "host:port",
    "redis+sentinel://a/service/hunter22": "database",
    "redis+sentinel://a/service?password=hunter22": "allows only",
    "redis+sentinel://a/service?ssl_ca_certs=/ca.pem": "allows only",
    "rediss+sentinel://a/service?ssl_foo=hunter22": "allows only",
    "redis+cluster://": "nodes of a cluster",
    "redis+cluster://u:hunter22@": "nodes of a cluster",
    "redis+cluster://a,,b": "host:port",
    "redis+cluster://u:hunter22@a:x": "host:port",
    "redis+cluster://a/1": "no database but 0",
    "redis+cluster://a/hunter22": "database",
    "redis+cluster://a?ssl_ca_certs=/ca.pem": "allows no query parameters",
    "redis+cluster://a?db=hunter22": "allows no query parameters",
    "rediss+cluster://a?password=hunter22": "allows only",
    "redis://localhost?hunter22=1": "allows only",
    "redis://localhost?socket_timeout=hunter22": "allows only",
    "redis://localhost?protocol=3": "allows only",
    "redis://localhost?decode_responses=true": "allows only",
    "redis://localhost?max_connections=1": "allows only",
    "redis://localhost?ssl_ca_certs=/ca.pem": "allows only",
    "unix:///run/redis.sock?timeout=0": "allows only",
    "redis://localhost?db=hunter22": "database",
    "rediss://localhost?ssl_cert_reqs=hunter22": "ssl_cert_reqs",
    "rediss://localhost?ssl_check_hostname=hunter22": "ssl_check_hostname",
}


@pytest.mark.parametrize("url", GOOD)
def test_valid_urls_are_accepted_and_no_password_is_in_the_repr(url: str) -> None:
    assert config.load({}, {"STREAM_SERVER_REDIS": url, "STREAM_SERVER_REDIS_READ": url}).redis_read == url
    assert SECRET not in repr(RedisClient(url, 1.0)._pool)


def test_several_replicas_are_separated_by_blanks_and_each_is_checked() -> None:
    primary, pair = {"STREAM_SERVER_REDIS": "redis://localhost"}, "redis://near  redis+cluster://a:1,b:2"
    assert config.load({}, primary | {"STREAM_SERVER_REDIS_READ": pair}).redis_read == pair
    with pytest.raises(InvalidSetting, match="must begin with one of"):
        config.load({}, primary | {"STREAM_SERVER_REDIS_READ": "redis://near http://far"})
    with pytest.raises(InvalidSetting, match="holds a password"):
        config.load({"redis_read": f"redis://near redis://ann:{SECRET}@far"}, primary)


@pytest.mark.parametrize(
    ("url", "replicas"),
    [
        ("redis://localhost/3", "redis://near"),
        ("redis://localhost", "redis://near redis://far?db=3"),
        ("redis+sentinel://localhost/main/3", "redis+sentinel://localhost/main"),
        ("redis+cluster://localhost", "unix:///run/redis.sock?db=3"),
    ],
)
def test_a_replica_is_read_in_the_database_of_the_primary(url: str, replicas: str) -> None:
    """It has all databases of the primary. In another one, its pages would be empty, or those of another site."""
    with pytest.raises(InvalidSetting, match="database"):
        config.load({}, {"STREAM_SERVER_REDIS": url, "STREAM_SERVER_REDIS_READ": replicas})


def test_a_database_is_the_same_in_each_form_of_the_url() -> None:
    urls = (
        "redis://localhost/3?db=3 unix:///run/redis.sock?db=3 redis+sentinel://localhost/main/3 redis://localhost?db=3"
    )
    environ = {"STREAM_SERVER_REDIS": "redis://localhost/3", "STREAM_SERVER_REDIS_READ": urls}
    assert config.load({}, environ).redis_read == urls
    assert {RedisClient(each, 1.0)._pool.connection_kwargs["db"] for each in urls.split()} == {3}


@pytest.mark.parametrize("url", BAD)
@pytest.mark.parametrize("setting", ["redis", "redis_read"])
def test_invalid_urls_are_refused_with_the_setting_and_without_the_url(url: str, setting: str) -> None:
    with pytest.raises(InvalidSetting) as refusal:
        config.load({}, {"STREAM_SERVER_REDIS": "redis://localhost", f"STREAM_SERVER_{setting.upper()}": url})
    said = str(refusal.value)
    assert said.startswith(f"--{setting.replace('_', '-')} (STREAM_SERVER_")
    assert BAD[url] in said
    assert SECRET not in said
    assert refusal.value.__cause__ is None
    assert refusal.value.__suppress_context__


@pytest.mark.parametrize(("name", "value"), [("redis_read", "redis://localhost"), ("write_replicas", "1")])
def test_settings_of_replicas_need_an_external_redis(name: str, value: str) -> None:
    with pytest.raises(InvalidSetting, match="needs --redis"):
        config.load({}, {f"STREAM_SERVER_{name.upper()}": value})


def test_a_sentinel_url_holds_credentials_of_redis_and_of_the_sentinels() -> None:
    found = address.parse_group_url(
        "rediss+sentinel://ann:p%40ss@a.example.org:1,[::1],b/my%20service/3"
        "?sentinel_username=sam&sentinel_password=x%26y&ssl_ca_certs=/ca.pem&ssl_check_hostname=no"
    )
    assert found is not None
    assert found.hosts == (("a.example.org", 1), ("::1", 26379), ("b", 26379))
    assert (found.service, found.db, found.use_tls) == ("my service", 3, True)
    assert found.credentials == {"username": "ann", "password": "p@ss"}
    assert found.sentinel_credentials == {"username": "sam", "password": "x&y"}
    assert found.tls_options == {"ssl_ca_certs": "/ca.pem", "ssl_check_hostname": False}
    assert "p@ss" not in repr(found)
    assert "x&y" not in repr(found)


def test_only_sentinel_urls_are_parsed_as_such() -> None:
    assert address.parse_group_url("redis://localhost") is None
    with pytest.raises(InvalidRedisUrl):
        address.parse_group_url("redis+sentinel://")
