-- notices: shown
-- The rules of login and the user maps are shown to whoever may see them, and a rule that trusts
-- strangers is warned of.
show hba_rules;
----
hba_rules
local all all peer
hostssl all all all scram-sha-256
(SHOW)

show ident_maps;
----
ident_maps
''
(SHOW)

select * from pg_hba_file_rules;
----
line_number | type | database | user_name | address | netmask | auth_method | options | error
1 | local | {all} | {all} | ∅ | ∅ | peer | ∅ | ∅
2 | hostssl | {all} | {all} | all | ∅ | scram-sha-256 | ∅ | ∅
(SELECT 2)

alter system set ident_maps = E'# who is who\nm alice app\nm "bob b" "other one"';
----
(ALTER SYSTEM)

alter system set hba_rules = E'# who comes in\nhostssl all "root" 10.0.0.0/8 cert map=m\nhost sales,+staff +staff 0.0.0.0/0 trust\nhost all all ::1/128 trust\nhostssl all all all scram-sha-256 clientcert=verify-full\nlocal all all peer';
----
WARNING 01000: line 3 of the rules of login trusts clients from 0.0.0.0/0: whoever reaches a node from there is any user of that line
(ALTER SYSTEM)

show hba_rules;
----
hba_rules
# who comes in
hostssl all "root" 10.0.0.0/8 cert map=m
host sales,+staff +staff 0.0.0.0/0 trust
host all all ::1/128 trust
hostssl all all all scram-sha-256 clientcert=verify-full
local all all peer
(SHOW)

select * from pg_hba_file_rules;
----
line_number | type | database | user_name | address | netmask | auth_method | options | error
2 | hostssl | {all} | {root} | 10.0.0.0 | 255.0.0.0 | cert | {map=m} | ∅
3 | host | {sales,+staff} | {+staff} | 0.0.0.0 | 0.0.0.0 | trust | ∅ | ∅
4 | host | {all} | {all} | ::1 | ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff | trust | ∅ | ∅
5 | hostssl | {all} | {all} | all | ∅ | scram-sha-256 | {clientcert=verify-full} | ∅
6 | local | {all} | {all} | ∅ | ∅ | peer | ∅ | ∅
(SELECT 5)

select * from pg_ident_file_mappings;
----
line_number | map_name | sys_name | pg_username | error
2 | m | alice | app | ∅
3 | m | bob b | other one | ∅
(SELECT 2)

alter system set hba_rules = 'host all all 10.0.0.0/99 scram-sha-256';
----
ERROR F0000: line 1 of the rules of login: invalid CIDR mask in address "10.0.0.0/99"

alter system set hba_rules = 'host all all example.org/8 scram-sha-256';
----
ERROR F0000: line 1 of the rules of login: specifying both host name and CIDR mask is invalid: "example.org/8"

alter system set hba_rules = 'host all all 10.0.0.0 255.0.255.0 scram-sha-256';
----
ERROR F0000: line 1 of the rules of login: invalid IP mask "255.0.255.0": its bits are not the first ones

alter system set hba_rules = 'host all all all trust';
----
WARNING 01000: line 1 of the rules of login trusts clients from everywhere: whoever reaches a node from there is any user of that line
(ALTER SYSTEM)

alter system set work_mem = '1MB';
----
ERROR 0A000: ALTER SYSTEM of the parameter "work_mem" is not supported

create role m_a;
----
(CREATE ROLE)

set role m_a;
----
(SET)

show hba_rules;
----
ERROR 42501: must be superuser or have privileges of pg_read_all_settings to examine "hba_rules"

show ident_maps;
----
ERROR 42501: must be superuser or have privileges of pg_read_all_settings to examine "ident_maps"

select * from pg_hba_file_rules;
----
ERROR 42501: permission denied for view pg_hba_file_rules

select * from pg_ident_file_mappings;
----
ERROR 42501: permission denied for view pg_ident_file_mappings

select pg_reload_conf();
----
ERROR 42501: permission denied for function pg_reload_conf

alter system reset hba_rules;
----
ERROR 42501: permission denied to set parameter "hba_rules"

select has_table_privilege('pg_hba_file_rules', 'select'), has_table_privilege('pg_authid', 'select'), has_table_privilege('pg_class', 'select');
----
has_table_privilege | has_table_privilege | has_table_privilege
f | f | t
(SELECT 1)

select count(*) from pg_stat_ssl;
----
count
0
(SELECT 1)

reset role;
----
(RESET)

grant pg_meridian_nodes, pg_read_all_settings to m_a;
----
(GRANT ROLE)

set role m_a;
----
(SET)

show hba_rules;
----
hba_rules
host all all all trust
(SHOW)

select pg_reload_conf();
----
pg_reload_conf
t
(SELECT 1)

reset role;
----
(RESET)

select pid = pg_backend_pid() as mine, ssl, version, cipher, bits, client_dn from pg_stat_ssl;
----
mine | ssl | version | cipher | bits | client_dn
t | f | ∅ | ∅ | ∅ | ∅
(SELECT 1)

alter system reset hba_rules;
----
(ALTER SYSTEM)

alter system reset ident_maps;
----
(ALTER SYSTEM)

drop role m_a;
----
(DROP ROLE)

select acldefault('p', 10), acldefault('r', 10), acldefault('d', 10), acldefault('f', 10);
----
acldefault | acldefault | acldefault | acldefault
{root=sA/root} | {root=arwdDxt/root} | {=Tc/root,root=CTc/root} | {=X/root,root=X/root}
(SELECT 1)

