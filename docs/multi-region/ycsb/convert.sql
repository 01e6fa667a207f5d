-- From before.sql to what after.sql creates, with the rows that are there; those live in the primary region until they are moved.
ALTER DATABASE ycsb SET PRIMARY REGION "us-east1";
ALTER DATABASE ycsb ADD REGION "europe-west2";
ALTER DATABASE ycsb ADD REGION "asia-northeast1";
ALTER TABLE usertable SET LOCALITY REGIONAL BY ROW;
