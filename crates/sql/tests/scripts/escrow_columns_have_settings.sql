create table quotas (id int8 primary key, used int8 not null escrow check (used between 0 and 50), other int8);
----

alter table quotas alter column used set (escrow.forecaster = 'arima', escrow.epoch = '5m', escrow.protocol = 'any');
----

show create table quotas;
----

alter table quotas alter used set (escrow.forecaster = none, escrow.epoch = '1 day');
----

show create table quotas;
----

alter table quotas alter column used set (escrow.forecaster = 'oracle');
----

alter table quotas alter column used set (escrow.epoch = '1 month');
----

alter table quotas alter column used set (escrow.epoch = '100 ms');
----

alter table quotas alter column used set (escrow.protocol = 'majority');
----

alter table quotas alter column used set (escrow.protocol = 'paxos');
----

alter table quotas alter column used set (escrow.colour = 'red');
----

alter table quotas alter column used set (escrow.epoch);
----

alter table quotas alter column other set (escrow.epoch = '5m');
----

alter table quotas alter column none set (escrow.epoch = '5m');
----

alter table if exists none alter column none set (escrow.epoch = '5m');
----

alter table quotas alter column other set (n_distinct = 5);
----
