-- The auctions with at least 20 bids.
SELECT id, item_name
FROM auction
WHERE id IN (SELECT auction FROM bid GROUP BY auction HAVING count(*) >= 20)
