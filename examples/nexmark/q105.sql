-- The thousand auctions with the most bids.
SELECT a.id, a.item_name, count(b.auction) AS bids
FROM auction AS a JOIN bid AS b ON a.id = b.auction
GROUP BY a.id, a.item_name
ORDER BY bids DESC, a.id
LIMIT 1000
