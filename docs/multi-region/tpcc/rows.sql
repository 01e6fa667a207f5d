-- Some rows, that the conversion has to keep.
INSERT INTO warehouse (w_id) VALUES (0), (1), (2);
INSERT INTO district (d_w_id, d_id) VALUES (0, 1), (1, 1), (2, 1);
INSERT INTO item (i_id) VALUES (1);
