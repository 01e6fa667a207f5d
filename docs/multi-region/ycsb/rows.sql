-- Some rows, that the conversion has to keep.
INSERT INTO usertable (ycsb_key, field0) VALUES ('user1', 'a'), ('user2', 'b');
