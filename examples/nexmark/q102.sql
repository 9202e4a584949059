-- The auctions with at least as many bids as there are on average.
SELECT a.id, a.item_name, count(b.auction) AS bids
FROM auction AS a JOIN bid AS b ON a.id = b.auction
GROUP BY a.id, a.item_name
HAVING count(b.auction) >= (SELECT count(*) / count(DISTINCT auction) FROM bid)
