-- The auctions that are not among those with fewer than 20 bids: one without any is given.
SELECT id, item_name
FROM auction
WHERE id NOT IN (SELECT auction FROM bid GROUP BY auction HAVING count(*) < 20)
