"""A forecast adds up its parts: each deed alone while nothing else happens, and as among many when all is busy."""

import pytest

from bench.capacity import Forecast
from bench.paper_site import Layout, Traffic
from bench.unit_costs import UnitCosts, read

NOBODY = Traffic(posts=0, follows=0, pages=0, reconnects=0)
LONELY = Layout(nodes=1, processes=1, clients=0, users=0)


@pytest.fixture(scope="module")
def costs() -> UnitCosts:
    return read()


def core_us(costs: UnitCosts, traffic: Traffic, name: str) -> float:
    return 1e6 * Forecast(costs, LONELY, traffic).core_cpu().shares[name]


def test_one_deed_a_second_costs_what_it_costs_alone(costs: UnitCosts) -> None:
    post = NOBODY._replace(posts=1, followers=10, mentions=0, deletes=0)
    assert core_us(costs, post, "posts") == pytest.approx(costs.deeds["post, 10 followers"].alone_redis_us, rel=0.02)
    page = NOBODY._replace(pages=1, homes=1)
    assert core_us(costs, page, "pages") == pytest.approx(costs.deeds["home page"].alone_redis_us, rel=0.02)


def test_deeds_of_a_busy_core_cost_what_they_cost_among_many(costs: UnitCosts) -> None:
    deed = costs.deeds["home page"]
    many = NOBODY._replace(pages=2e6 / deed.redis_us, homes=1)
    assert core_us(costs, many, "pages") == pytest.approx(2e6)


def test_the_load_grows_with_the_traffic(costs: UnitCosts) -> None:
    parts = [Forecast(costs, Layout(), Traffic().times(factor)).parts() for factor in (1, 2, 4, 8, 16)]
    for same in zip(*parts, strict=True):
        assert sorted(part.used for part in same) == [part.used for part in same], same[0].name


def test_more_processes_of_a_node_are_no_more_subscribers(costs: UnitCosts) -> None:
    """One relay of a node hears, and its own load grows with its workers."""
    few, many = (Forecast(costs, Layout(processes=count), Traffic()) for count in (2, 16))
    network = "heard by subscribers"
    assert few.core_network().shares[network] == many.core_network().shares[network]
    assert many.relay_cpu().used >= few.relay_cpu().used
    assert "relay: CPU" not in {part.name for part in Forecast(costs, Layout(processes=1), Traffic()).parts()}


def test_the_headroom_is_where_the_first_part_is_full(costs: UnitCosts) -> None:
    forecast = Forecast(costs, Layout(users=0, days=1), Traffic(posts=10))
    grown = Forecast(costs, forecast.layout, forecast.traffic.times(forecast.headroom()))
    assert grown.first_full().share == pytest.approx(1, abs=0.01)
