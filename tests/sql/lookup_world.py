"""What the tests of lookup joins look up, and from where."""

from __future__ import annotations

SOURCE = "SOURCE(MYSQL(HOST 'db' PORT 3306 USER 'u' PASSWORD 'hidden word' DB 'shop' TABLE 'goods'))"
DDL = (
    "CREATE STREAM orders (oid int, pid string, customer int64, qty int)",
    "CREATE STREAM payments (oid int, amount float64)",
    """CREATE MUTABLE STREAM accounts (id int, customer int, v int, note string, INDEX by_customer (customer, v))
       PRIMARY KEY id""",
    """CREATE MUTABLE STREAM rates (base string, quote string, rate float64, INDEX by_quote (quote))
       PRIMARY KEY (base, quote)""",
    "CREATE STREAM profiles (id int, name string) PRIMARY KEY id SETTINGS mode='versioned_kv'",
    "CREATE STREAM ledger (id int, v int) PRIMARY KEY id SETTINGS mode='changelog_kv'",
    f"""CREATE DICTIONARY goods (pid string, title string DEFAULT 'none', price int) PRIMARY KEY pid {SOURCE}
        LAYOUT(HYBRID_HASH_CACHE(TTL 3600 PATH 'goods' max_hot_key_count 1000))""",
    f"""CREATE DICTIONARY places (a int, b string, city string, lat float64) PRIMARY KEY (a, b) {SOURCE}
        LAYOUT(COMPLEX_KEY_HASHED()) LIFETIME(300)""",
    """CREATE EXTERNAL TABLE stock (id int, code string, n int) PRIMARY KEY id SETTINGS type = 'mysql',
       address = 'db:3306', user = 'u', password = 'hidden word', database = 'shop', table = 'stock'""",
    "CREATE TABLE products (id INT PRIMARY KEY, code VARCHAR, price INT)",
    "CREATE INDEX products_by_code ON products (code)",
    "CREATE TABLE sales (id INT PRIMARY KEY, product_id INT, quantity BIGINT)",
    "CREATE TABLE bag (k INT, v INT)",
    "CREATE SOURCE clicks (product_id INT, code VARCHAR)",
    "CREATE MATERIALIZED VIEW cheap AS SELECT id, price FROM products WHERE price < 10",
    "CREATE VIEW named AS SELECT id, price FROM products",
)
TEMPORAL = "FOR SYSTEM_TIME AS OF PROCTIME()"
