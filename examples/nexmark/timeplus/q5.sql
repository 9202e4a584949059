-- The auctions with the most bids of each ten seconds, every two seconds.
SELECT counted.auction, counted.num, counted.window_start, counted.window_end
FROM (
  SELECT auction, count() AS num, window_start, window_end
  FROM hop(bid, date_time, 2s, 10s)
  GROUP BY auction, window_start, window_end
) AS counted
JOIN (
  SELECT max(num) AS maxn, window_start, window_end
  FROM (
    SELECT auction, count() AS num, window_start, window_end
    FROM hop(bid, date_time, 2s, 10s)
    GROUP BY auction, window_start, window_end
  ) AS again
  GROUP BY window_start, window_end
) AS most
ON counted.window_start = most.window_start AND counted.window_end = most.window_end AND counted.num >= most.maxn
