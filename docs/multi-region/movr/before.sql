-- movr in one region.
CREATE DATABASE movr;
\c movr
CREATE TABLE users (
  id UUID NOT NULL,
  city TEXT NOT NULL,
  name TEXT,
  address TEXT,
  credit_card TEXT,
  PRIMARY KEY (city, id)
);
CREATE TABLE vehicles (
  id UUID NOT NULL,
  city TEXT NOT NULL,
  type TEXT,
  owner_id UUID,
  creation_time TIMESTAMP,
  status TEXT,
  current_location TEXT,
  ext JSONB,
  PRIMARY KEY (city, id),
  FOREIGN KEY (city, owner_id) REFERENCES users (city, id)
);
CREATE TABLE rides (
  id UUID NOT NULL,
  city TEXT NOT NULL,
  vehicle_city TEXT,
  rider_id UUID,
  vehicle_id UUID,
  start_address TEXT,
  end_address TEXT,
  start_time TIMESTAMP,
  end_time TIMESTAMP,
  revenue NUMERIC(10,2),
  PRIMARY KEY (city, id),
  CHECK (vehicle_city = city),
  FOREIGN KEY (city, rider_id) REFERENCES users (city, id),
  FOREIGN KEY (vehicle_city, vehicle_id) REFERENCES vehicles (city, id)
);
CREATE TABLE vehicle_location_histories (
  city TEXT NOT NULL,
  ride_id UUID NOT NULL,
  timestamp TIMESTAMP NOT NULL,
  lat FLOAT8,
  long FLOAT8,
  PRIMARY KEY (city, ride_id, timestamp),
  FOREIGN KEY (city, ride_id) REFERENCES rides (city, id)
);
CREATE TABLE promo_codes (
  code TEXT NOT NULL,
  description TEXT,
  creation_time TIMESTAMP,
  expiration_time TIMESTAMP,
  rules JSONB,
  PRIMARY KEY (code)
);
CREATE TABLE user_promo_codes (
  city TEXT NOT NULL,
  user_id UUID NOT NULL,
  code TEXT NOT NULL,
  timestamp TIMESTAMP,
  usage_count INT,
  PRIMARY KEY (city, user_id, code),
  FOREIGN KEY (city, user_id) REFERENCES users (city, id)
);
