-- postgres: same
create table n (id int primary key);
----
(CREATE TABLE)

insert into n select * from generate_series(1, 12);
----
(INSERT 0 12)

begin;
----
(BEGIN)

declare c no scroll cursor for select id from n order by id;
----
(DECLARE CURSOR)

fetch c;
----
id
1
(FETCH 1)

fetch from c;
----
id
2
(FETCH 1)

fetch in c;
----
id
3
(FETCH 1)

fetch next c;
----
id
4
(FETCH 1)

fetch next from c;
----
id
5
(FETCH 1)

fetch next in c;
----
id
6
(FETCH 1)

fetch 2 in c;
----
id
7
8
(FETCH 2)

fetch forward c;
----
id
9
(FETCH 1)

fetch forward from c;
----
id
10
(FETCH 1)

fetch forward 1 from c;
----
id
11
(FETCH 1)

fetch all in c;
----
id
12
(FETCH 1)

fetch all c;
----
id
(FETCH 0)

fetch c;
----
id
(FETCH 0)

close c;
----
(CLOSE CURSOR)

declare c no scroll cursor for select id from n order by id;
----
(DECLARE CURSOR)

move c;
----
(MOVE 1)

move 2 in c;
----
(MOVE 2)

move forward 3 from c;
----
(MOVE 3)

fetch c;
----
id
7
(FETCH 1)

fetch relative 2 from c;
----
id
9
(FETCH 1)

fetch absolute 11 from c;
----
id
11
(FETCH 1)

move forward all in c;
----
(MOVE 1)

fetch forward all from c;
----
id
(FETCH 0)

close c;
----
(CLOSE CURSOR)

declare c no scroll cursor for select id from n order by id;
----
(DECLARE CURSOR)

fetch 0 from c;
----
id
(FETCH 0)

fetch absolute 0 c;
----
id
(FETCH 0)

fetch first from c;
----
id
1
(FETCH 1)

move 0 in c;
----
(MOVE 1)

move relative 0 from c;
----
(MOVE 1)

savepoint s;
----
(SAVEPOINT)

fetch 0 from c;
----
ERROR 55000: cursor can only scan forward
HINT: Declare it with SCROLL option to enable backward scan.

rollback to s;
----
(ROLLBACK)

close c;
----
(CLOSE CURSOR)

declare d0 no scroll cursor for select id from n order by id;
----
(DECLARE CURSOR)

move 2 in d0;
----
(MOVE 2)

declare d1 no scroll cursor for select id from n order by id;
----
(DECLARE CURSOR)

move 2 in d1;
----
(MOVE 2)

declare d2 no scroll cursor for select id from n order by id;
----
(DECLARE CURSOR)

move 2 in d2;
----
(MOVE 2)

declare d3 no scroll cursor for select id from n order by id;
----
(DECLARE CURSOR)

move 2 in d3;
----
(MOVE 2)

declare d4 no scroll cursor for select id from n order by id;
----
(DECLARE CURSOR)

move 2 in d4;
----
(MOVE 2)

declare d5 no scroll cursor for select id from n order by id;
----
(DECLARE CURSOR)

move 2 in d5;
----
(MOVE 2)

declare d6 no scroll cursor for select id from n order by id;
----
(DECLARE CURSOR)

move 2 in d6;
----
(MOVE 2)

declare d7 no scroll cursor for select id from n order by id;
----
(DECLARE CURSOR)

move 2 in d7;
----
(MOVE 2)

declare d8 no scroll cursor for select id from n order by id;
----
(DECLARE CURSOR)

move 2 in d8;
----
(MOVE 2)

declare d9 no scroll cursor for select id from n order by id;
----
(DECLARE CURSOR)

move 2 in d9;
----
(MOVE 2)

declare d10 no scroll cursor for select id from n order by id;
----
(DECLARE CURSOR)

move 2 in d10;
----
(MOVE 2)

declare d11 no scroll cursor for select id from n order by id;
----
(DECLARE CURSOR)

move 2 in d11;
----
(MOVE 2)

declare d12 no scroll cursor for select id from n order by id;
----
(DECLARE CURSOR)

move 2 in d12;
----
(MOVE 2)

declare d13 no scroll cursor for select id from n order by id;
----
(DECLARE CURSOR)

move 2 in d13;
----
(MOVE 2)

declare d14 no scroll cursor for select id from n order by id;
----
(DECLARE CURSOR)

move 2 in d14;
----
(MOVE 2)

savepoint s;
----
(SAVEPOINT)

fetch prior from d0;
----
ERROR 55000: cursor can only scan forward
HINT: Declare it with SCROLL option to enable backward scan.

rollback to s;
----
(ROLLBACK)

fetch last from d1;
----
ERROR 55000: cursor can only scan forward
HINT: Declare it with SCROLL option to enable backward scan.

rollback to s;
----
(ROLLBACK)

fetch first in d2;
----
ERROR 55000: cursor can only scan forward
HINT: Declare it with SCROLL option to enable backward scan.

rollback to s;
----
(ROLLBACK)

fetch absolute 2 from d3;
----
ERROR 55000: cursor can only scan forward
HINT: Declare it with SCROLL option to enable backward scan.

rollback to s;
----
(ROLLBACK)

fetch absolute -1 from d4;
----
ERROR 55000: cursor can only scan forward
HINT: Declare it with SCROLL option to enable backward scan.

rollback to s;
----
(ROLLBACK)

fetch absolute 0 in d5;
----
ERROR 55000: cursor can only scan forward
HINT: Declare it with SCROLL option to enable backward scan.

rollback to s;
----
(ROLLBACK)

fetch relative -1 from d6;
----
ERROR 55000: cursor can only scan forward
HINT: Declare it with SCROLL option to enable backward scan.

rollback to s;
----
(ROLLBACK)

fetch relative 0 from d7;
----
ERROR 55000: cursor can only scan forward
HINT: Declare it with SCROLL option to enable backward scan.

rollback to s;
----
(ROLLBACK)

fetch backward d8;
----
ERROR 55000: cursor can only scan forward
HINT: Declare it with SCROLL option to enable backward scan.

rollback to s;
----
(ROLLBACK)

fetch backward 2 from d9;
----
ERROR 55000: cursor can only scan forward
HINT: Declare it with SCROLL option to enable backward scan.

rollback to s;
----
(ROLLBACK)

fetch backward all from d10;
----
ERROR 55000: cursor can only scan forward
HINT: Declare it with SCROLL option to enable backward scan.

rollback to s;
----
(ROLLBACK)

fetch -1 from d11;
----
ERROR 55000: cursor can only scan forward
HINT: Declare it with SCROLL option to enable backward scan.

rollback to s;
----
(ROLLBACK)

fetch forward -1 from d12;
----
ERROR 55000: cursor can only scan forward
HINT: Declare it with SCROLL option to enable backward scan.

rollback to s;
----
(ROLLBACK)

move prior d13;
----
ERROR 55000: cursor can only scan forward
HINT: Declare it with SCROLL option to enable backward scan.

rollback to s;
----
(ROLLBACK)

move backward all in d14;
----
ERROR 55000: cursor can only scan forward
HINT: Declare it with SCROLL option to enable backward scan.

rollback to s;
----
(ROLLBACK)

fetch next from d0;
----
ERROR 55000: portal "d0" cannot be run

rollback to s;
----
(ROLLBACK)

close d0;
----
(CLOSE CURSOR)

declare e no scroll cursor for select id from n where id > 11 order by id;
----
(DECLARE CURSOR)

fetch backward -1 from e;
----
id
12
(FETCH 1)

fetch 1 from e;
----
id
(FETCH 0)

move 0 in e;
----
(MOVE 0)

fetch absolute 3 from e;
----
id
(FETCH 0)

fetch absolute 7 from e;
----
id
(FETCH 0)

savepoint s;
----
(SAVEPOINT)

fetch nope;
----
ERROR 34000: cursor "nope" does not exist

rollback to s;
----
(ROLLBACK)

fetch 1 2 from c;
----
ERROR 42601: syntax error at or near "2"
POSITION: 9

rollback to s;
----
(ROLLBACK)

fetch next from c where true;
----
ERROR 42601: syntax error at or near "where"
POSITION: 19

rollback;
----
(ROLLBACK)

fetch c;
----
ERROR 34000: cursor "c" does not exist

begin;
----
(BEGIN)

declare next no scroll cursor for select id from n order by id;
----
(DECLARE CURSOR)

fetch next;
----
id
1
(FETCH 1)

fetch next next;
----
id
2
(FETCH 1)

fetch "next";
----
id
3
(FETCH 1)

commit;
----
(COMMIT)

