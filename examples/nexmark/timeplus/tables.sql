-- The tables of Nexmark as streams. A query over them reads what comes from then on.

CREATE STREAM person (
  id int64,
  name string,
  email_address string,
  credit_card string,
  city string,
  state string,
  date_time datetime64(6),
  extra string
) SETTINGS event_time_column = 'date_time';

CREATE STREAM auction (
  id int64,
  item_name string,
  description string,
  initial_bid int64,
  reserve int64,
  date_time datetime64(6),
  expires datetime64(6),
  seller int64,
  category int64,
  extra string
) SETTINGS event_time_column = 'date_time';

CREATE STREAM bid (
  auction int64,
  bidder int64,
  price int64,
  channel string,
  url string,
  date_time datetime64(6),
  extra string
) SETTINGS event_time_column = 'date_time';

CREATE MUTABLE STREAM side_input (key int64, value string) PRIMARY KEY key;
