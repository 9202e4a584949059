-- Bids with a value of a table beside them, as it stands when the bid comes.
SELECT b.auction, b.bidder, b.price, b.date_time, s.value
FROM bid AS b JOIN side_input FOR SYSTEM_TIME AS OF PROCTIME() AS s ON mod(b.auction, 10000) = s.key
