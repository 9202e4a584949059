-- The last bid of each bidder in each auction.
SELECT auction, bidder, price, channel, url, date_time, extra
FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY bidder, auction ORDER BY date_time DESC, extra) AS place
  FROM bid
) AS ranked
WHERE place <= 1
