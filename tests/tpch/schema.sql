CREATE TABLE region (r_regionkey INT, r_name VARCHAR, r_comment VARCHAR, PRIMARY KEY (r_regionkey));

CREATE TABLE nation (n_nationkey INT, n_name VARCHAR, n_regionkey INT, n_comment VARCHAR, PRIMARY KEY (n_nationkey));

CREATE TABLE supplier (
  s_suppkey INT, s_name VARCHAR, s_address VARCHAR, s_nationkey INT, s_phone VARCHAR, s_acctbal NUMERIC(12, 2),
  s_comment VARCHAR, PRIMARY KEY (s_suppkey)
);

CREATE TABLE part (
  p_partkey INT, p_name VARCHAR, p_mfgr VARCHAR, p_brand VARCHAR, p_type VARCHAR, p_size INT, p_container VARCHAR,
  p_retailprice NUMERIC(12, 2), p_comment VARCHAR, PRIMARY KEY (p_partkey)
);

CREATE TABLE partsupp (
  ps_partkey INT, ps_suppkey INT, ps_availqty INT, ps_supplycost NUMERIC(12, 2), ps_comment VARCHAR,
  PRIMARY KEY (ps_partkey, ps_suppkey)
);

CREATE TABLE customer (
  c_custkey INT, c_name VARCHAR, c_address VARCHAR, c_nationkey INT, c_phone VARCHAR, c_acctbal NUMERIC(12, 2),
  c_mktsegment VARCHAR, c_comment VARCHAR, PRIMARY KEY (c_custkey)
);

CREATE TABLE orders (
  o_orderkey INT, o_custkey INT, o_orderstatus VARCHAR, o_totalprice NUMERIC(12, 2), o_orderdate DATE,
  o_orderpriority VARCHAR, o_clerk VARCHAR, o_shippriority INT, o_comment VARCHAR, PRIMARY KEY (o_orderkey)
);

CREATE TABLE lineitem (
  l_orderkey INT, l_partkey INT, l_suppkey INT, l_linenumber INT, l_quantity NUMERIC(12, 2),
  l_extendedprice NUMERIC(12, 2), l_discount NUMERIC(12, 2), l_tax NUMERIC(12, 2), l_returnflag VARCHAR,
  l_linestatus VARCHAR, l_shipdate DATE, l_commitdate DATE, l_receiptdate DATE, l_shipinstruct VARCHAR,
  l_shipmode VARCHAR, l_comment VARCHAR, PRIMARY KEY (l_orderkey, l_linenumber)
);
