-- Orders with their customer, payments and parcel, as one wide row for who analyses them, kept as its parts change.
--   dovetail run examples/wide_table/example.sql --until-idle
--   python examples/wide_table/events.py 1000 | dovetail sql

CREATE TABLE customers (id INT, name VARCHAR, country VARCHAR, PRIMARY KEY (id));
CREATE TABLE orders (id INT, customer_id INT, product VARCHAR, total INT, ordered_at TIMESTAMP, PRIMARY KEY (id));
CREATE TABLE receipts (id INT, order_id INT, amount INT, PRIMARY KEY (id));
CREATE TABLE parcels (order_id INT, carrier VARCHAR, state VARCHAR, PRIMARY KEY (order_id));

CREATE MATERIALIZED VIEW wide_orders AS
SELECT o.id AS id, o.product AS product, o.total AS total, o.ordered_at AS ordered_at,
       c.name AS customer, c.country AS country,
       coalesce(r.paid, 0) AS paid, coalesce(r.paid, 0) >= o.total AS settled,
       p.carrier AS carrier, coalesce(p.state, 'not sent') AS parcel
FROM orders AS o
LEFT JOIN customers AS c ON o.customer_id = c.id
LEFT JOIN (SELECT order_id, sum(amount) AS paid FROM receipts GROUP BY order_id) AS r ON o.id = r.order_id
LEFT JOIN parcels AS p ON o.id = p.order_id;

INSERT INTO customers VALUES (1, 'Ann', 'NO');
INSERT INTO orders VALUES (70, 1, 'pen', 30, '2026-01-31 12:00:00'), (71, 2, 'ink', 9, '2026-01-31 12:00:01');
INSERT INTO receipts VALUES (900, 70, 30);
INSERT INTO parcels VALUES (70, 'DHL', 'on its way');
UPDATE parcels SET state = 'delivered' WHERE order_id = 70;
DELETE FROM orders WHERE id = 71;

SELECT * FROM table(wide_orders) ORDER BY id;
