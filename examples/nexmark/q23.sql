-- Bids with their bidder, and with what the bidder sells.
SELECT b.auction, b.bidder, b.price, b.channel, b.url, b.date_time AS bid_time,
       p.name, p.email_address, p.credit_card, p.city, p.state, p.date_time AS registered,
       a.id, a.item_name, a.description, a.initial_bid, a.reserve, a.date_time, a.expires, a.category
FROM bid AS b JOIN person AS p ON p.id = b.bidder JOIN auction AS a ON a.seller = b.bidder
