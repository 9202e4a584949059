-- The bids of each channel and day, by price, with how many bidders and auctions there were.
SELECT channel,
       format_datetime(date_time, '%Y-%m-%d') AS day,
       max(format_datetime(date_time, '%H:%i')) AS minute,
       count() AS total_bids,
       count_if(price < 10000) AS rank1_bids,
       count_if(price >= 10000 AND price < 1000000) AS rank2_bids,
       count_if(price >= 1000000) AS rank3_bids,
       uniq_exact(bidder) AS total_bidders,
       uniq_exact_if(bidder, price < 10000) AS rank1_bidders,
       uniq_exact_if(bidder, price >= 10000 AND price < 1000000) AS rank2_bidders,
       uniq_exact_if(bidder, price >= 1000000) AS rank3_bidders,
       uniq_exact(auction) AS total_auctions,
       uniq_exact_if(auction, price < 10000) AS rank1_auctions,
       uniq_exact_if(auction, price >= 10000 AND price < 1000000) AS rank2_auctions,
       uniq_exact_if(auction, price >= 1000000) AS rank3_auctions
FROM bid
GROUP BY channel, day
