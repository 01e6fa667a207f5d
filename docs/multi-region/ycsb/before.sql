-- YCSB in one region.
CREATE DATABASE ycsb;
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
);
