create table quotas (id int8 primary key, used int8 not null escrow check (used between 0 and 50), other int8);
----
(CREATE TABLE)

alter table quotas alter column used set (escrow.forecaster = 'arima', escrow.epoch = '5m', escrow.protocol = 'any');
----
(ALTER TABLE)

show create table quotas;
----
table_name | create_statement
quotas | CREATE TABLE public.quotas (
    id bigint NOT NULL,
    used bigint NOT NULL ESCROW,
    other bigint,
    CONSTRAINT quotas_pkey PRIMARY KEY (id),
    CONSTRAINT quotas_used_check CHECK ((used BETWEEN 0 AND 50))
);
ALTER TABLE public.quotas ALTER COLUMN used SET (escrow.forecaster = 'arima', escrow.epoch = '300 seconds');
(SHOW 1)

alter table quotas alter used set (escrow.forecaster = none, escrow.epoch = '1 day');
----
(ALTER TABLE)

show create table quotas;
----
table_name | create_statement
quotas | CREATE TABLE public.quotas (
    id bigint NOT NULL,
    used bigint NOT NULL ESCROW,
    other bigint,
    CONSTRAINT quotas_pkey PRIMARY KEY (id),
    CONSTRAINT quotas_used_check CHECK ((used BETWEEN 0 AND 50))
);
ALTER TABLE public.quotas ALTER COLUMN used SET (escrow.forecaster = 'none', escrow.epoch = '86400 seconds');
(SHOW 1)

alter table quotas alter column used set (escrow.forecaster = 'oracle');
----
ERROR 22023: invalid value for parameter "escrow.forecaster": "oracle"
HINT: forecaster "oracle" does not exist; there are: none, random-walk, arima.

alter table quotas alter column used set (escrow.epoch = '1 month');
----
ERROR 22023: invalid value for parameter "escrow.epoch": "1 month"
HINT: An epoch is an interval from '1 second' to '1 day'.

alter table quotas alter column used set (escrow.epoch = '100 ms');
----
ERROR 22023: invalid value for parameter "escrow.epoch": "100 ms"
HINT: An epoch is an interval from '1 second' to '1 day'.

alter table quotas alter column used set (escrow.protocol = 'majority');
----
(ALTER TABLE)

show create table quotas;
----
table_name | create_statement
quotas | CREATE TABLE public.quotas (
    id bigint NOT NULL,
    used bigint NOT NULL ESCROW,
    other bigint,
    CONSTRAINT quotas_pkey PRIMARY KEY (id),
    CONSTRAINT quotas_used_check CHECK ((used BETWEEN 0 AND 50))
);
ALTER TABLE public.quotas ALTER COLUMN used SET (escrow.protocol = 'majority', escrow.forecaster = 'none', escrow.epoch = '86400 seconds');
(SHOW 1)

alter table quotas alter column used set (escrow.protocol = 'any');
----
(ALTER TABLE)

alter table quotas alter column used set (escrow.protocol = 'paxos');
----
ERROR 22023: invalid value for parameter "escrow.protocol": "paxos"
HINT: Available values: any, majority.

alter table quotas alter column used set (escrow.colour = 'red');
----
ERROR 22023: unrecognized parameter "escrow.colour"
HINT: There are escrow.protocol, escrow.forecaster and escrow.epoch.

alter table quotas alter column used set (escrow.epoch);
----
ERROR 42601: syntax error at or near ")"
POSITION: 55

alter table quotas alter column other set (escrow.epoch = '5m');
----
ERROR 42809: column "other" of relation "quotas" is not an escrow column

alter table quotas alter column none set (escrow.epoch = '5m');
----
ERROR 42703: column "none" of relation "quotas" does not exist

alter table if exists none alter column none set (escrow.epoch = '5m');
----
(ALTER TABLE)

alter table quotas alter column other set (n_distinct = 5);
----
ERROR 42601: syntax error at or near "set"
POSITION: 39

-- A default that no row could have is refused, whatever brings it about.
alter table quotas alter column used set default 51;
----
ERROR 23514: the default of column "used" is outside its bounds

alter table quotas alter column used set default 50;
----
(ALTER TABLE)

alter table quotas drop constraint quotas_used_check, add constraint quotas_used_check check (used between 0 and 40);
----
ERROR 23514: the default of column "used" is outside its bounds

alter table quotas alter column used drop default;
----
(ALTER TABLE)

alter table quotas drop constraint quotas_used_check, add constraint quotas_used_check check (used between 0 and 40);
----
(ALTER TABLE)

