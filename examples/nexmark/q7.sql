-- The highest bids of each ten seconds.
SELECT b.auction, b.price, b.bidder, b.date_time
FROM bid AS b JOIN (
  SELECT max(price) AS maxprice, window_end
  FROM TUMBLE(bid, date_time, INTERVAL '10' SECOND)
  GROUP BY window_end
) AS m ON b.price = m.maxprice
WHERE b.date_time BETWEEN m.window_end - INTERVAL '10' SECOND AND m.window_end
