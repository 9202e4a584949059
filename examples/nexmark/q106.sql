-- The lowest of the closing prices.
SELECT min(final) AS lowest
FROM (
  SELECT a.id AS id, max(b.price) AS final
  FROM auction AS a JOIN bid AS b ON a.id = b.auction
  WHERE b.date_time BETWEEN a.date_time AND a.expires
  GROUP BY a.id
) AS closed
