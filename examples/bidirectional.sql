-- Two mutable streams, joined both ways: a change on either side takes back the old result and gives the new one.
--   dovetail run examples/bidirectional.sql --until-idle

CREATE MUTABLE STREAM left_mu (
  i int,
  k string,
  k1 string
) PRIMARY KEY (k, k1);

CREATE MUTABLE STREAM right_mu (
  ii int,
  kk string,
  kk1 string
) PRIMARY KEY (kk, kk1);

CREATE MATERIALIZED VIEW joined_mu AS
SELECT i, k, k1, ii, kk, kk1
FROM left_mu JOIN right_mu ON left_mu.k = right_mu.kk;

INSERT INTO left_mu (i, k, k1) VALUES (1, 'a', 'b'), (5, 'a', 'c');
INSERT INTO right_mu (ii, kk, kk1) VALUES (11, 'a', 'bb');
INSERT INTO left_mu (i, k, k1) VALUES (2, 'a', 'b');
DELETE FROM left_mu WHERE k1 = 'c';

-- A streaming SELECT shows the changelog of what there is, and goes on until Ctrl-C.
SELECT *, _tp_delta FROM left_mu JOIN right_mu ON left_mu.k = right_mu.kk EMIT CHANGELOG;

-- The same question about the content now: the answer is a table.
SELECT left_mu.k, count(), sum(i), max(ii)
FROM table(left_mu) AS left_mu JOIN table(right_mu) AS right_mu ON left_mu.k = right_mu.kk
GROUP BY left_mu.k;
