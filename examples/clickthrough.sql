-- Ad impressions with their clicks: each impression at once, and again when it is clicked on.
--   dovetail run examples/clickthrough.sql --until-idle

CREATE STREAM impressions (
  id int64,
  campaign string,
  price float64,
  shown_at datetime64(3)
) SETTINGS event_time_column = 'shown_at';

CREATE STREAM clicks (
  impression int64,
  clicked_at datetime64(3)
) SETTINGS event_time_column = 'clicked_at';

CREATE MATERIALIZED VIEW clickthrough AS
SELECT i.id AS impression, i.campaign AS campaign, i.price AS price, i.shown_at AS shown_at, c.clicked_at AS clicked_at
FROM impressions AS i LEFT JOIN clicks AS c ON i.id = c.impression;

INSERT INTO impressions VALUES
  (1, 'winter', 0.12, '2026-01-31 12:00:00.000'),
  (2, 'winter', 0.10, '2026-01-31 12:00:00.250'),
  (3, 'travel', 0.05, '2026-01-31 12:00:00.900');

INSERT INTO clicks VALUES
  (1, '2026-01-31 12:00:04.100'),
  (3, '2026-01-31 12:00:09.000');

-- Mutable streams can be joined with the view; here is what it holds as it changes.
SELECT impression, campaign, clicked_at, _tp_delta FROM clickthrough;

SELECT campaign, count() AS impressions, count(clicked_at) AS clicks, round(sum(price), 2) AS cost
FROM table(clickthrough)
GROUP BY campaign
ORDER BY campaign;
