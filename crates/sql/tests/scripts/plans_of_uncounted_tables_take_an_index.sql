-- Tables whose rows are not counted may be large: conditions on an index are worth it.
create table lines (w int not null, d int not null, o int not null, n int not null, amount int, primary key (w, d, o, n));
----
(CREATE TABLE)

create index lines_amount on lines (amount);
----
(CREATE INDEX)

explain select d, sum(amount) from lines where (w, d, o) in ((1, 1, 7), (1, 2, 7), (1, 3, 7), (1, 4, 7), (1, 5, 7), (1, 6, 7), (1, 7, 7), (1, 8, 7), (1, 9, 7), (1, 10, 7)) group by d;
----
QUERY PLAN
Group in batches
  Group Key: lines.d
  ->  Index Scan using lines_pkey on lines
        Index Cond: (w = 1) AND (d IN (1, 2, 3, 4, 5, 6, 7, 8, 9, 10)) AND (o = 7)
Regions: us-east1
(EXPLAIN)

explain update lines set amount = 0 where (w, d, o) in ((1, 1, 7), (1, 2, 7), (1, 3, 7), (1, 4, 7), (1, 5, 7), (1, 6, 7), (1, 7, 7), (1, 8, 7), (1, 9, 7), (1, 10, 7));
----
QUERY PLAN
Update on lines
  ->  Index Scan using lines_pkey on lines
        Index Cond: (w = 1) AND (d IN (1, 2, 3, 4, 5, 6, 7, 8, 9, 10)) AND (o = 7)
        Locks rows
Regions: us-east1
(EXPLAIN)

explain select count(*) from lines where w in (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20);
----
QUERY PLAN
Aggregate in batches
  ->  Index Scan using lines_pkey on lines
        Index Cond: (w IN (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20))
Regions: us-east1
(EXPLAIN)

explain select n from lines where amount in (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24);
----
QUERY PLAN
Index Only Scan using lines_amount on lines
  Index Cond: (amount IN (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24))
Regions: us-east1
(EXPLAIN)

explain select n from lines where amount = any (array[1, 2, 3]) and w = 1;
----
QUERY PLAN
Index Scan using lines_pkey on lines
  Index Cond: (w = 1)
  Filter: …
Regions: us-east1
(EXPLAIN)

