-- YCSB over three regions from the beginning: a row lives where it was inserted.
CREATE DATABASE ycsb PRIMARY REGION "us-east1" REGIONS "europe-west2", "asia-northeast1";
\c ycsb
CREATE TABLE usertable (
  ycsb_key TEXT NOT NULL,
  field0 TEXT,
  field1 TEXT,
  field2 TEXT,
  field3 TEXT,
  field4 TEXT,
  field5 TEXT,
  field6 TEXT,
  field7 TEXT,
  field8 TEXT,
  field9 TEXT,
  PRIMARY KEY (ycsb_key)
) LOCALITY REGIONAL BY ROW;
