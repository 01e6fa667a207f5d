-- Some rows, that the conversion has to keep.
INSERT INTO users VALUES
  ('00000000-0000-4000-8000-000000000001', 'boston', 'Ann', '1 Main Street', '1'),
  ('00000000-0000-4000-8000-000000000002', 'paris', 'Bea', '2 rue Haute', '2'),
  ('00000000-0000-4000-8000-000000000003', 'tokyo', 'Chie', '3 chome', '3');
INSERT INTO vehicles (id, city, type, owner_id) VALUES ('00000000-0000-4000-8000-000000000004', 'paris', 'bike', '00000000-0000-4000-8000-000000000002');
INSERT INTO promo_codes (code) VALUES ('half off');
