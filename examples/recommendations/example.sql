-- What is known of users and products, for who recommends: kept up to date as users act and products change.
--   dovetail run examples/recommendations/example.sql --until-idle
--   python examples/recommendations/events.py 5000 | dovetail sql

CREATE TABLE products (id INT, category VARCHAR, price INT, PRIMARY KEY (id));

CREATE TABLE actions (
  user_id INT,
  product_id INT,
  kind VARCHAR,
  at TIMESTAMP
) APPEND ONLY;

-- How much each user cares for each category, by its products as they are now.
CREATE MATERIALIZED VIEW tastes AS
SELECT a.user_id AS user_id, p.category AS category,
       count(*) FILTER (WHERE a.kind = 'view') AS views,
       count(*) FILTER (WHERE a.kind = 'purchase') AS purchases,
       coalesce(sum(p.price) FILTER (WHERE a.kind = 'purchase'), 0) AS spent
FROM actions AS a JOIN products AS p ON a.product_id = p.id
GROUP BY a.user_id, p.category;

-- Which products the same users buy.
CREATE MATERIALIZED VIEW bought_together AS
SELECT one.product_id AS product_id, other.product_id AS other_id, count(DISTINCT one.user_id) AS buyers
FROM actions AS one JOIN actions AS other ON one.user_id = other.user_id AND one.product_id <> other.product_id
WHERE one.kind = 'purchase' AND other.kind = 'purchase'
GROUP BY one.product_id, other.product_id
HAVING count(DISTINCT one.user_id) >= 2;

INSERT INTO products VALUES (1, 'pens', 3), (2, 'ink', 9);
INSERT INTO actions VALUES
  (100, 1, 'purchase', '2026-01-31 12:00:05'),
  (101, 1, 'purchase', '2026-01-31 12:00:06'),
  (102, 1, 'view', '2026-01-31 12:00:07');
INSERT INTO actions VALUES
  (100, 2, 'purchase', '2026-01-31 12:00:08'),
  (101, 2, 'purchase', '2026-01-31 12:00:09');
UPDATE products SET category = 'pens' WHERE id = 2;

SELECT * FROM table(tastes) ORDER BY user_id, category;
SELECT * FROM table(bought_together) ORDER BY product_id;
