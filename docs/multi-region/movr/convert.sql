-- From before.sql to several regions, with the rows that are there: each moves to its region, and new ones live where they are inserted.
ALTER DATABASE movr SET PRIMARY REGION "us-east1";
ALTER DATABASE movr ADD REGION "europe-west2";
ALTER DATABASE movr ADD REGION "asia-northeast1";
ALTER TABLE users SET LOCALITY REGIONAL BY ROW;
UPDATE users SET crdb_region = CASE
  WHEN city IN ('boston', 'new york', 'washington dc') THEN 'us-east1'
  WHEN city IN ('amsterdam', 'paris', 'rome') THEN 'europe-west2'
  WHEN city IN ('osaka', 'seoul', 'tokyo') THEN 'asia-northeast1'
END;
ALTER TABLE vehicles SET LOCALITY REGIONAL BY ROW;
UPDATE vehicles SET crdb_region = CASE
  WHEN city IN ('boston', 'new york', 'washington dc') THEN 'us-east1'
  WHEN city IN ('amsterdam', 'paris', 'rome') THEN 'europe-west2'
  WHEN city IN ('osaka', 'seoul', 'tokyo') THEN 'asia-northeast1'
END;
ALTER TABLE rides SET LOCALITY REGIONAL BY ROW;
UPDATE rides SET crdb_region = CASE
  WHEN city IN ('boston', 'new york', 'washington dc') THEN 'us-east1'
  WHEN city IN ('amsterdam', 'paris', 'rome') THEN 'europe-west2'
  WHEN city IN ('osaka', 'seoul', 'tokyo') THEN 'asia-northeast1'
END;
ALTER TABLE vehicle_location_histories SET LOCALITY REGIONAL BY ROW;
UPDATE vehicle_location_histories SET crdb_region = CASE
  WHEN city IN ('boston', 'new york', 'washington dc') THEN 'us-east1'
  WHEN city IN ('amsterdam', 'paris', 'rome') THEN 'europe-west2'
  WHEN city IN ('osaka', 'seoul', 'tokyo') THEN 'asia-northeast1'
END;
ALTER TABLE promo_codes SET LOCALITY GLOBAL;
ALTER TABLE user_promo_codes SET LOCALITY REGIONAL BY ROW;
UPDATE user_promo_codes SET crdb_region = CASE
  WHEN city IN ('boston', 'new york', 'washington dc') THEN 'us-east1'
  WHEN city IN ('amsterdam', 'paris', 'rome') THEN 'europe-west2'
  WHEN city IN ('osaka', 'seoul', 'tokyo') THEN 'asia-northeast1'
END;
