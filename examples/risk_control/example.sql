-- Payments that are too large for the risk rating that their account had at that moment, and accounts that pay too often.
--   dovetail run examples/risk_control/example.sql --until-idle
--   python examples/risk_control/events.py 5000 | dovetail sql

-- One partition each, so that one later row moves the watermark; of several, each has to show how far time has come.
CREATE TABLE ratings (
  account INT,
  rating VARCHAR,
  since TIMESTAMP,
  WATERMARK FOR since AS since - INTERVAL '10' SECOND,
  PRIMARY KEY (account)
) WITH (shards = 1);

CREATE TABLE payments (
  id INT,
  account INT,
  amount INT,
  at TIMESTAMP,
  WATERMARK FOR at AS at - INTERVAL '10' SECOND
) APPEND ONLY WITH (shards = 1);

-- Each payment once, with the rating of its moment: it waits until the watermarks of both tables have passed it.
CREATE MATERIALIZED VIEW alerts AS
SELECT p.id AS id, p.account AS account, p.amount AS amount, coalesce(r.rating, 'unknown') AS rating, p.at AS at
FROM payments AS p LEFT JOIN ratings FOR SYSTEM_TIME AS OF p.at AS r ON p.account = r.account
WHERE p.amount > CASE r.rating WHEN 'low' THEN 10000 WHEN 'medium' THEN 1000 ELSE 100 END;

-- Accounts with more than five payments in a minute, told once, when the minute is over.
CREATE MATERIALIZED VIEW bursts AS
SELECT account, window_start AS minute, count(*) AS payments, sum(amount) AS total
FROM TUMBLE(payments, at, INTERVAL '1' MINUTE)
GROUP BY account, window_start
HAVING count(*) > 5
EMIT ON WINDOW CLOSE;

INSERT INTO ratings VALUES (1, 'low', '2026-01-31 12:00:00'), (2, 'medium', '2026-01-31 12:00:00');
INSERT INTO payments VALUES
  (501, 1, 5000, '2026-01-31 12:00:10'),
  (502, 2, 5000, '2026-01-31 12:00:11'),
  (503, 3, 150, '2026-01-31 12:00:12'),
  (504, 1, 5000, '2026-01-31 12:00:40');
-- The account was found to be at risk half a minute in: what it paid before stands, what it pays then is too much.
INSERT INTO ratings VALUES (1, 'high', '2026-01-31 12:00:30');
INSERT INTO payments VALUES
  (511, 4, 20, '2026-01-31 12:01:01'),
  (512, 4, 20, '2026-01-31 12:01:02'),
  (513, 4, 20, '2026-01-31 12:01:03'),
  (514, 4, 20, '2026-01-31 12:01:04'),
  (515, 4, 20, '2026-01-31 12:01:05'),
  (516, 4, 20, '2026-01-31 12:01:06');
-- Later rows move the watermarks on.
INSERT INTO ratings VALUES (9, 'low', '2026-01-31 12:05:00');
INSERT INTO payments VALUES (599, 9, 1, '2026-01-31 12:05:00');

SELECT * FROM alerts;
