-- The average closing price of each category.
SELECT category, avg(final) AS average
FROM (
  SELECT a.id AS id, a.category AS category, max(b.price) AS final
  FROM auction AS a JOIN bid AS b ON a.id = b.auction
  WHERE b.date_time BETWEEN a.date_time AND a.expires
  GROUP BY a.id, a.category
) AS closed
GROUP BY category
