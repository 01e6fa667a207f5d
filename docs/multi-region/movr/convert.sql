-- From before.sql to several regions, with the rows that are there, to what after.sql creates.
ALTER DATABASE movr SET PRIMARY REGION "us-east1";
ALTER DATABASE movr ADD REGION "europe-west2";
ALTER DATABASE movr ADD REGION "asia-northeast1";
ALTER TABLE users ADD COLUMN region crdb_internal_region NOT NULL AS (CASE
  WHEN city IN ('boston', 'new york', 'washington dc') THEN 'us-east1'
  WHEN city IN ('amsterdam', 'paris', 'rome') THEN 'europe-west2'
  WHEN city IN ('osaka', 'seoul', 'tokyo') THEN 'asia-northeast1'
END) STORED;
ALTER TABLE users SET LOCALITY REGIONAL BY ROW AS region;
ALTER TABLE vehicles ADD COLUMN region crdb_internal_region NOT NULL AS (CASE
  WHEN city IN ('boston', 'new york', 'washington dc') THEN 'us-east1'
  WHEN city IN ('amsterdam', 'paris', 'rome') THEN 'europe-west2'
  WHEN city IN ('osaka', 'seoul', 'tokyo') THEN 'asia-northeast1'
END) STORED;
ALTER TABLE vehicles SET LOCALITY REGIONAL BY ROW AS region;
ALTER TABLE rides ADD COLUMN region crdb_internal_region NOT NULL AS (CASE
  WHEN city IN ('boston', 'new york', 'washington dc') THEN 'us-east1'
  WHEN city IN ('amsterdam', 'paris', 'rome') THEN 'europe-west2'
  WHEN city IN ('osaka', 'seoul', 'tokyo') THEN 'asia-northeast1'
END) STORED;
ALTER TABLE rides SET LOCALITY REGIONAL BY ROW AS region;
ALTER TABLE vehicle_location_histories ADD COLUMN region crdb_internal_region NOT NULL AS (CASE
  WHEN city IN ('boston', 'new york', 'washington dc') THEN 'us-east1'
  WHEN city IN ('amsterdam', 'paris', 'rome') THEN 'europe-west2'
  WHEN city IN ('osaka', 'seoul', 'tokyo') THEN 'asia-northeast1'
END) STORED;
ALTER TABLE vehicle_location_histories SET LOCALITY REGIONAL BY ROW AS region;
ALTER TABLE promo_codes SET LOCALITY GLOBAL;
ALTER TABLE user_promo_codes ADD COLUMN region crdb_internal_region NOT NULL AS (CASE
  WHEN city IN ('boston', 'new york', 'washington dc') THEN 'us-east1'
  WHEN city IN ('amsterdam', 'paris', 'rome') THEN 'europe-west2'
  WHEN city IN ('osaka', 'seoul', 'tokyo') THEN 'asia-northeast1'
END) STORED;
ALTER TABLE user_promo_codes SET LOCALITY REGIONAL BY ROW AS region;
