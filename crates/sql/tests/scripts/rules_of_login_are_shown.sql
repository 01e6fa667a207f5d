-- notices: shown
-- The rules of login and the user maps are shown to whoever may see them, and a rule that trusts
-- strangers is warned of.
show hba_rules;
show ident_maps;
select * from pg_hba_file_rules;
alter system set ident_maps = E'# who is who\nm alice app\nm "bob b" "other one"';
alter system set hba_rules = E'# who comes in\nhostssl all "root" 10.0.0.0/8 cert map=m\nhost sales,+staff +staff 0.0.0.0/0 trust\nhost all all ::1/128 trust\nhostssl all all all scram-sha-256 clientcert=verify-full\nlocal all all peer';
show hba_rules;
select * from pg_hba_file_rules;
select * from pg_ident_file_mappings;
alter system set hba_rules = 'host all all 10.0.0.0/99 scram-sha-256';
alter system set hba_rules = 'host all all example.org/8 scram-sha-256';
alter system set hba_rules = 'host all all 10.0.0.0 255.0.255.0 scram-sha-256';
alter system set hba_rules = 'host all all all trust';
alter system set work_mem = '1MB';
create role m_a;
set role m_a;
show hba_rules;
show ident_maps;
select * from pg_hba_file_rules;
select * from pg_ident_file_mappings;
select pg_reload_conf();
alter system reset hba_rules;
select has_table_privilege('pg_hba_file_rules', 'select'), has_table_privilege('pg_authid', 'select'), has_table_privilege('pg_class', 'select');
select count(*) from pg_stat_ssl;
reset role;
grant pg_meridian_nodes, pg_read_all_settings to m_a;
set role m_a;
show hba_rules;
select pg_reload_conf();
reset role;
select pid = pg_backend_pid() as mine, ssl, version, cipher, bits, client_dn from pg_stat_ssl;
alter system reset hba_rules;
alter system reset ident_maps;
drop role m_a;
select acldefault('p', 10), acldefault('r', 10), acldefault('d', 10), acldefault('f', 10);
