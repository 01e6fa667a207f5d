-- postgres: same
create table k (id int primary key, email text unique, hits int not null default 1);
----
(CREATE TABLE)

insert into k values (1, 'a@x'), (2, 'b@x');
----
(INSERT 0 2)

insert into k values (3, 'a@x') on conflict (email) do update set hits = k.hits + 1 returning *;
----
id | email | hits
1 | a@x | 2
(INSERT 0 1)

insert into k values (3, 'a@x') on conflict do nothing returning *;
----
id | email | hits
(INSERT 0 0)

insert into k values (1, 'c@x') on conflict (email) do nothing;
----
ERROR 23505: duplicate key value violates unique constraint "k_pkey"
DETAIL: Key (id)=(1) already exists.

insert into k values (4, 'd@x'), (5, 'd@x') on conflict (email) do nothing;
----
(INSERT 0 1)

insert into k values (6, 'e@x'), (7, 'e@x') on conflict (email) do update set hits = 9;
----
ERROR 21000: ON CONFLICT DO UPDATE command cannot affect row a second time
HINT: Ensure that no rows proposed for insertion within the same command have duplicate constrained values.

insert into k values (1, 'zz') on conflict on constraint k_pkey do update set email = excluded.email returning id, email;
----
id | email
1 | zz
(INSERT 0 1)

insert into k values (1, 'zz') on conflict (hits) do nothing;
----
ERROR 42P10: there is no unique or exclusion constraint matching the ON CONFLICT specification

insert into k values (1, 'zz') on conflict do update set hits = 1;
----
ERROR 42601: ON CONFLICT DO UPDATE requires inference specification or constraint name
HINT: For example, ON CONFLICT (column_name).

insert into k as t values (2, 'q') on conflict (id) do update set hits = t.hits + excluded.hits where t.hits < 100 returning t.*;
----
id | email | hits
2 | b@x | 2
(INSERT 0 1)

select * from k order by id;
----
id | email | hits
1 | zz | 2
2 | b@x | 2
4 | d@x | 1
(SELECT 3)

