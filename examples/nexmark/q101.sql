-- Each auction with its highest bid so far.
SELECT a.id, a.item_name, highest.price AS highest_bid
FROM auction AS a LEFT JOIN (
  SELECT auction, max(price) AS price FROM bid GROUP BY auction
) AS highest ON a.id = highest.auction
