"""Which units show a role: the names that packages, collections, snaps and container tools give their services."""

from __future__ import annotations

import pytest

from advisor.facts.system.roles import ROLES
from tests.cases import read_cases
from tests.serving_hosts import UNITS

DATA = read_cases(__file__)

SHOWS = {
    **DATA["SHOWS"],
    "postgresql": (
        *("postgresql.service", "postgresql@16-main.service", "postgresql-16.service"),
        *("postgresql-9.6.service", "postgresql15.service", "patroni.service", "patroni@one.service"),
        *("edb-as-15.service", "edb-as@17-main.service", "postgrespro-std-15.service"),
        *("rh-postgresql10-postgresql.service", "snap.charmed-postgresql.patroni.service"),
    ),
    "mysql": (
        *("mysql.service", "mysqld.service", "mariadb.service", "mariadb@replica.service"),
        *("mysql@bootstrap.service", "mysqld@replica01.service", "rh-mariadb105-mariadb.service"),
        *("rh-mysql80-mysqld.service", "snap.charmed-mysql.mysqld.service"),
    ),
    "redis": (
        *("redis.service", "redis-server.service", "redis-server@cache.service", "redis_6379.service"),
        *("redis6.service", "redis@one.service", "rh-redis6-redis.service", "redis-stack-server.service"),
        *("valkey.service", "valkey@default.service", "valkey-server.service", "valkey-server@6379.service"),
        *("keydb-server.service",),
    ),
    "kafka": (
        *("kafka.service", "kafka@1.service", "confluent-kafka.service", "confluent-server.service"),
        *("kafka-server.service", "apache-kafka.service", "snap.charmed-kafka.daemon.service"),
    ),
    "web-server": (
        *("nginx.service", "openresty.service", "angie.service", "apache2.service", "apache2@site.service"),
        *("httpd.service", "httpd24-httpd.service", "rh-nginx120-nginx.service", "haproxy.service"),
        *("squid.service", "lshttpd.service", "trafficserver.service", "caddy.service", "varnish.service"),
    ),
}
SHOW_NOTHING = DATA["SHOW_NOTHING"]


def roles_of(unit: str) -> list[str]:
    return [role for role, pattern in ROLES.items() if pattern.fullmatch(unit)]


@pytest.mark.parametrize(("role", "unit"), [(role, unit) for role, units in SHOWS.items() for unit in units])
def test_a_unit_shows_its_role_and_no_other(role: str, unit: str) -> None:
    assert roles_of(unit) == [role]


@pytest.mark.parametrize("unit", SHOW_NOTHING)
def test_a_unit_of_something_else_shows_no_role(unit: str) -> None:
    assert roles_of(unit) == []


def test_every_role_that_units_show_has_names_here() -> None:
    assert set(SHOWS) == set(ROLES) == set(UNITS)
