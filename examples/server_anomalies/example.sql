-- What TCP measures at the network interfaces whose traffic is out of bounds.
--   dovetail run examples/server_anomalies/example.sql --until-idle
--   python examples/server_anomalies/events.py 5000 | dovetail sql

CREATE TABLE interfaces (host VARCHAR, interface VARCHAR, capacity INT, PRIMARY KEY (host, interface));

CREATE TABLE traffic (
  host VARCHAR,
  interface VARCHAR,
  mbits INT,
  at TIMESTAMP,
  WATERMARK FOR at AS at - INTERVAL '5' SECOND
) APPEND ONLY;

CREATE TABLE tcp (
  host VARCHAR,
  interface VARCHAR,
  retransmits INT,
  rtt_ms INT,
  at TIMESTAMP,
  WATERMARK FOR at AS at - INTERVAL '5' SECOND
) APPEND ONLY;

-- An interface is out of bounds for a minute in which it carries more than nine tenths of what it can.
CREATE MATERIALIZED VIEW overloaded AS
SELECT t.host AS host, t.interface AS interface, t.window_start AS minute, max(t.mbits) AS peak, i.capacity AS capacity
FROM TUMBLE(traffic, at, INTERVAL '1' MINUTE) AS t
JOIN interfaces AS i ON t.host = i.host AND t.interface = i.interface
GROUP BY t.host, t.interface, t.window_start, i.capacity
HAVING max(t.mbits) > 0.9 * i.capacity;

CREATE MATERIALIZED VIEW suspects AS
SELECT m.host AS host, m.interface AS interface, m.at AS at, m.retransmits AS retransmits, m.rtt_ms AS rtt_ms, o.peak AS peak
FROM TUMBLE(tcp, at, INTERVAL '1' MINUTE) AS m
JOIN overloaded AS o ON m.host = o.host AND m.interface = o.interface AND m.window_start = o.minute;

INSERT INTO interfaces VALUES ('web1', 'eth0', 1000), ('web2', 'eth0', 1000);
INSERT INTO tcp VALUES
  ('web1', 'eth0', 3, 12, '2026-01-31 12:00:10'),
  ('web2', 'eth0', 0, 2, '2026-01-31 12:00:10');
INSERT INTO traffic VALUES
  ('web1', 'eth0', 950, '2026-01-31 12:00:20'),
  ('web2', 'eth0', 310, '2026-01-31 12:00:20');
-- The interface is faster than was known: what was said of it is taken back.
UPDATE interfaces SET capacity = 10000 WHERE host = 'web1' AND interface = 'eth0';

SELECT * FROM table(suspects) ORDER BY host, at;
