-- Payments within ten seconds of their order, each trade with the last quote before it, and counts by minute.
--   dovetail run examples/bounded.sql --until-idle

CREATE STREAM orders (order_id int64, customer string, at datetime64(3)) SETTINGS event_time_column = 'at';
CREATE STREAM payments (order_id int64, amount float64, at datetime64(3)) SETTINGS event_time_column = 'at';

CREATE MATERIALIZED VIEW paid AS
SELECT o.order_id AS order_id, customer, amount
FROM orders AS o LEFT JOIN payments AS p ON o.order_id = p.order_id AND date_diff_within(10s, o.at, p.at);

INSERT INTO orders VALUES
  (1, 'ann', '2026-01-31 12:00:00.000'),
  (2, 'bob', '2026-01-31 12:00:05.000'),
  (3, 'cem', '2026-01-31 12:01:10.000');
INSERT INTO payments VALUES
  (1, 12.5, '2026-01-31 12:00:07.000'),
  (2, 8.0, '2026-01-31 12:00:40.000');

-- bob's payment came 35 s after the order, so his row stays padded. A streaming SELECT waits for what the view makes of its input ..
SELECT order_id, customer, amount, _tp_delta FROM paid;

-- .. and table(paid) is what the view holds at the moment.
SELECT * FROM table(paid) ORDER BY order_id;

CREATE STREAM trades (id int64, symbol string, at datetime64(3)) SETTINGS event_time_column = 'at';
CREATE STREAM quotes (symbol string, bid float64, at datetime64(3)) SETTINGS event_time_column = 'at';

CREATE MATERIALIZED VIEW priced AS
SELECT t.id AS id, t.symbol AS symbol, bid
FROM trades AS t ASOF JOIN quotes AS q ON t.symbol = q.symbol AND t.at >= q.at;

INSERT INTO quotes VALUES
  ('A', 10.0, '2026-01-31 12:00:01.000'),
  ('A', 12.0, '2026-01-31 12:00:07.000');
INSERT INTO trades VALUES
  (1, 'A', '2026-01-31 12:00:05.000'),
  (2, 'A', '2026-01-31 12:00:07.000');

SELECT id, symbol, bid FROM priced;

-- The orders are there already: seek_to takes them in.
CREATE MATERIALIZED VIEW orders_by_minute AS
SELECT window_start AS minute, count() AS orders FROM tumble(orders, at, 1m) GROUP BY window_start
SETTINGS seek_to = 'earliest';

SELECT minute, orders, _tp_delta FROM orders_by_minute;
SELECT * FROM table(orders_by_minute) ORDER BY minute;
