-- The winning bid of each auction: the highest, the first of several.
SELECT id, item_name, description, initial_bid, reserve, date_time, expires, seller, category, extra, bidder, price, bid_time
FROM (
  SELECT a.id, a.item_name, a.description, a.initial_bid, a.reserve, a.date_time, a.expires, a.seller, a.category, a.extra,
         b.bidder, b.price, b.date_time AS bid_time,
         ROW_NUMBER() OVER (PARTITION BY a.id ORDER BY b.price DESC, b.date_time, b.bidder) AS place
  FROM auction AS a JOIN bid AS b ON a.id = b.auction
  WHERE b.date_time BETWEEN a.date_time AND a.expires
) AS ranked
WHERE place <= 1
