"""Real database servers for tests: one process each, in a folder of its own, gone with the test process."""

from tests.servers.clickhouse import clickhouse
from tests.servers.mariadb import mariadb
from tests.servers.postgresql import postgresql
from tests.servers.process import Server
from tests.servers.proxy import Proxy, proxy
from tests.servers.redis_server import redis_cluster, redis_server

__all__ = ["Proxy", "Server", "clickhouse", "mariadb", "postgresql", "proxy", "redis_cluster", "redis_server"]
