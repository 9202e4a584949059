-- The click rate of each ad, as impressions and clicks come in.
--   dovetail run examples/ad_click_rate/example.sql --until-idle
--   python examples/ad_click_rate/events.py 5000 | dovetail sql

CREATE STREAM impressions (
  id int64,
  ad_id int32,
  user_id int32,
  at datetime64(3)
) SETTINGS event_time_column = 'at';

CREATE STREAM clicks (
  ad_id int32,
  user_id int32,
  at datetime64(3)
) SETTINGS event_time_column = 'at';

-- A click counts for what the user was shown of the ad in the ten minutes before it; a second click on it does not.
CREATE MATERIALIZED VIEW click_rates AS
SELECT i.ad_id AS ad_id,
       count(DISTINCT i.id) AS shown,
       count(DISTINCT i.id) FILTER (WHERE c.user_id IS NOT NULL) AS clicked,
       clicked / shown AS rate
FROM impressions AS i LEFT JOIN clicks AS c
ON i.ad_id = c.ad_id AND i.user_id = c.user_id AND c.at >= i.at AND c.at <= i.at + INTERVAL 10 MINUTE
GROUP BY i.ad_id;

INSERT INTO impressions VALUES (1, 7, 100, '2026-01-31 12:00:00.000'), (2, 8, 100, '2026-01-31 12:00:02.000');
INSERT INTO impressions VALUES (3, 7, 101, '2026-01-31 12:00:04.000');
INSERT INTO clicks VALUES (7, 101, '2026-01-31 12:00:09.000');
-- Once more on the same, and one on what was not shown.
INSERT INTO clicks VALUES (7, 101, '2026-01-31 12:00:10.000'), (8, 102, '2026-01-31 12:00:11.000');

SELECT * FROM table(click_rates) ORDER BY ad_id;
