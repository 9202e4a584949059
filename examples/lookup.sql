-- Orders, each with its product as another database holds it.
--   make up
--   mkdir -p .dovetail/files
--   sqlite3 .dovetail/files/shop.db "CREATE TABLE products (id text PRIMARY KEY, name text);
--                                    INSERT INTO products VALUES ('p1', 'pen'), ('p2', 'ink')"
--   dovetail run examples/lookup.sql --until-idle

CREATE STREAM orders (id string, product_id string, quantity uint32);

CREATE DICTIONARY products (id string, name string DEFAULT 'unknown')
PRIMARY KEY id
SOURCE(SQLITE(PATH 'shop.db' TABLE 'products'))
LAYOUT(HYBRID_HASH_CACHE(TTL 3600 PATH 'products' MAX_HOT_KEY_COUNT 1000));

CREATE MATERIALIZED VIEW named_orders AS
SELECT orders.id AS id, quantity, name
FROM orders LEFT JOIN products ON orders.product_id = products.id
SETTINGS join_algorithm = 'direct';

INSERT INTO orders VALUES ('o1', 'p1', 2), ('o2', 'p9', 1), ('o3', 'p2', 5);

-- The same in an expression: a missing key gives the DEFAULT of the attribute.
SELECT id, dict_get('products', 'name', product_id) AS name FROM orders SETTINGS seek_to = 'earliest';

-- Change the source, then let all workers ask it again:
--   sqlite3 .dovetail/files/shop.db "UPDATE products SET name = 'quill' WHERE id = 'p1'"
SYSTEM RELOAD DICTIONARY products;

INSERT INTO orders VALUES ('o4', 'p1', 1);

SELECT id, quantity, name FROM named_orders;

SELECT name, status, query_count, hit_rate, source_statements FROM system.dictionaries;
