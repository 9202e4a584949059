-- The ten highest bids of each auction.
SELECT auction, bidder, price, channel, url, date_time, extra, place
FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY auction ORDER BY price DESC, date_time, extra) AS place
  FROM bid
) AS ranked
WHERE place <= 10
