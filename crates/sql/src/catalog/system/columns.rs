//! Which system tables there are, with PostgreSQL 15's columns: `schema.name oid kind: column
//! type[!], …`. `!` is NOT NULL; oid 0 means that PostgreSQL gives none that is fixed. Types
//! PostgreSQL has and Meridian lacks are shown as the nearest ones: `pg_node_tree`, `inet`,
//! `aclitem` as text, `xid` as int8, the vectors as arrays.

/// See the module's essay. A line that starts with a space continues the one before.
pub(super) const TABLES: &str = "\
pg_catalog.pg_aggregate 2600 r: aggfnoid regproc!, aggkind char!, aggnumdirectargs int2!, aggtransfn regproc!,
  aggfinalfn regproc!, aggcombinefn regproc!, aggserialfn regproc!, aggdeserialfn regproc!, aggmtransfn regproc!,
  aggminvtransfn regproc!, aggmfinalfn regproc!, aggfinalextra bool!, aggmfinalextra bool!, aggfinalmodify char!,
  aggmfinalmodify char!, aggsortop oid!, aggtranstype oid!, aggtransspace int4!, aggmtranstype oid!,
  aggmtransspace int4!, agginitval text, aggminitval text
pg_catalog.pg_am 2601 r: oid oid!, amname name!, amhandler regproc!, amtype char!
pg_catalog.pg_amop 2602 r: oid oid!, amopfamily oid!, amoplefttype oid!, amoprighttype oid!, amopstrategy int2!,
  amoppurpose char!, amopopr oid!, amopmethod oid!, amopsortfamily oid!
pg_catalog.pg_amproc 2603 r: oid oid!, amprocfamily oid!, amproclefttype oid!, amprocrighttype oid!, amprocnum int2!,
  amproc regproc!
pg_catalog.pg_attrdef 2604 r: oid oid!, adrelid oid!, adnum int2!, adbin text!
pg_catalog.pg_attribute 1249 r: attrelid oid!, attname name!, atttypid oid!, attstattarget int4!, attlen int2!,
  attnum int2!, attndims int4!, attcacheoff int4!, atttypmod int4!, attbyval bool!, attalign char!, attstorage char!,
  attcompression char!, attnotnull bool!, atthasdef bool!, atthasmissing bool!, attidentity char!, attgenerated char!,
  attisdropped bool!, attislocal bool!, attinhcount int4!, attcollation oid!, attacl text[], attoptions text[],
  attfdwoptions text[], attmissingval text
pg_catalog.pg_auth_members 1261 r: roleid oid!, member oid!, grantor oid!, admin_option bool!
pg_catalog.pg_authid 1260 r: oid oid!, rolname name!, rolsuper bool!, rolinherit bool!, rolcreaterole bool!,
  rolcreatedb bool!, rolcanlogin bool!, rolreplication bool!, rolbypassrls bool!, rolconnlimit int4!,
  rolpassword text, rolvaliduntil timestamptz
pg_catalog.pg_available_extensions 0 v: name name, default_version text, installed_version text, comment text
pg_catalog.pg_cast 2605 r: oid oid!, castsource oid!, casttarget oid!, castfunc oid!, castcontext char!,
  castmethod char!
pg_catalog.pg_class 1259 r: oid oid!, relname name!, relnamespace oid!, reltype oid!, reloftype oid!, relowner oid!,
  relam oid!, relfilenode oid!, reltablespace oid!, relpages int4!, reltuples float4!, relallvisible int4!,
  reltoastrelid oid!, relhasindex bool!, relisshared bool!, relpersistence char!, relkind char!, relnatts int2!,
  relchecks int2!, relhasrules bool!, relhastriggers bool!, relhassubclass bool!, relrowsecurity bool!,
  relforcerowsecurity bool!, relispopulated bool!, relreplident char!, relispartition bool!, relrewrite oid!,
  relfrozenxid int8!, relminmxid int8!, relacl text[], reloptions text[], relpartbound text
pg_catalog.pg_collation 3456 r: oid oid!, collname name!, collnamespace oid!, collowner oid!, collprovider char!,
  collisdeterministic bool!, collencoding int4!, collcollate text, collctype text, colliculocale text,
  collversion text
pg_catalog.pg_constraint 2606 r: oid oid!, conname name!, connamespace oid!, contype char!, condeferrable bool!,
  condeferred bool!, convalidated bool!, conrelid oid!, contypid oid!, conindid oid!, conparentid oid!,
  confrelid oid!, confupdtype char!, confdeltype char!, confmatchtype char!, conislocal bool!, coninhcount int4!,
  connoinherit bool!, conkey int2[], confkey int2[], conpfeqop oid[], conppeqop oid[], conffeqop oid[],
  confdelsetcols int2[], conexclop oid[], conbin text
pg_catalog.pg_conversion 2607 r: oid oid!, conname name!, connamespace oid!, conowner oid!, conforencoding int4!,
  contoencoding int4!, conproc regproc!, condefault bool!
pg_catalog.pg_database 1262 r: oid oid!, datname name!, datdba oid!, encoding int4!, datlocprovider char!,
  datistemplate bool!, datallowconn bool!, datconnlimit int4!, datfrozenxid int8!, datminmxid int8!,
  dattablespace oid!, datcollate text!, datctype text!, daticulocale text, datcollversion text, datacl text[]
pg_catalog.pg_db_role_setting 2964 r: setdatabase oid!, setrole oid!, setconfig text[]
pg_catalog.pg_depend 2608 r: classid oid!, objid oid!, objsubid int4!, refclassid oid!, refobjid oid!,
  refobjsubid int4!, deptype char!
pg_catalog.pg_description 2609 r: objoid oid!, classoid oid!, objsubid int4!, description text!
pg_catalog.pg_enum 3501 r: oid oid!, enumtypid oid!, enumsortorder float4!, enumlabel name!
pg_catalog.pg_event_trigger 3466 r: oid oid!, evtname name!, evtevent name!, evtowner oid!, evtfoid oid!,
  evtenabled char!, evttags text[]
pg_catalog.pg_extension 3079 r: oid oid!, extname name!, extowner oid!, extnamespace oid!, extrelocatable bool!,
  extversion text!, extconfig oid[], extcondition text[]
pg_catalog.pg_foreign_data_wrapper 2328 r: oid oid!, fdwname name!, fdwowner oid!, fdwhandler oid!, fdwvalidator oid!,
  fdwacl text[], fdwoptions text[]
pg_catalog.pg_foreign_server 1417 r: oid oid!, srvname name!, srvowner oid!, srvfdw oid!, srvtype text,
  srvversion text, srvacl text[], srvoptions text[]
pg_catalog.pg_foreign_table 3118 r: ftrelid oid!, ftserver oid!, ftoptions text[]
pg_catalog.pg_group 0 v: groname name, grosysid oid, grolist oid[]
pg_catalog.pg_hba_file_rules 0 v: line_number int4, type text, database text[], user_name text[], address text,
  netmask text, auth_method text, options text[], error text
pg_catalog.pg_ident_file_mappings 0 v: line_number int4, map_name text, sys_name text, pg_username text, error text
pg_catalog.pg_index 2610 r: indexrelid oid!, indrelid oid!, indnatts int2!, indnkeyatts int2!, indisunique bool!,
  indnullsnotdistinct bool!, indisprimary bool!, indisexclusion bool!, indimmediate bool!, indisclustered bool!,
  indisvalid bool!, indcheckxmin bool!, indisready bool!, indislive bool!, indisreplident bool!, indkey int2[]!,
  indcollation oid[]!, indclass oid[]!, indoption int2[]!, indexprs text, indpred text
pg_catalog.pg_indexes 0 v: schemaname name, tablename name, indexname name, tablespace name, indexdef text
pg_catalog.pg_inherits 2611 r: inhrelid oid!, inhparent oid!, inhseqno int4!, inhdetachpending bool!
pg_catalog.pg_language 2612 r: oid oid!, lanname name!, lanowner oid!, lanispl bool!, lanpltrusted bool!,
  lanplcallfoid oid!, laninline oid!, lanvalidator oid!, lanacl text[]
pg_catalog.pg_locks 0 v: locktype text, database oid, relation oid, page int4, tuple int2, virtualxid text,
  transactionid int8, classid oid, objid oid, objsubid int2, virtualtransaction text, pid int4, mode text,
  granted bool, fastpath bool, waitstart timestamptz
pg_catalog.pg_matviews 0 v: schemaname name, matviewname name, matviewowner name, tablespace name, hasindexes bool,
  ispopulated bool, definition text
pg_catalog.pg_namespace 2615 r: oid oid!, nspname name!, nspowner oid!, nspacl text[]
pg_catalog.pg_opclass 2616 r: oid oid!, opcmethod oid!, opcname name!, opcnamespace oid!, opcowner oid!,
  opcfamily oid!, opcintype oid!, opcdefault bool!, opckeytype oid!
pg_catalog.pg_operator 2617 r: oid oid!, oprname name!, oprnamespace oid!, oprowner oid!, oprkind char!,
  oprcanmerge bool!, oprcanhash bool!, oprleft oid!, oprright oid!, oprresult oid!, oprcom oid!, oprnegate oid!,
  oprcode regproc!, oprrest regproc!, oprjoin regproc!
pg_catalog.pg_opfamily 2753 r: oid oid!, opfmethod oid!, opfname name!, opfnamespace oid!, opfowner oid!
pg_catalog.pg_partitioned_table 3350 r: partrelid oid!, partstrat char!, partnatts int2!, partdefid oid!,
  partattrs int2[]!, partclass oid[]!, partcollation oid[]!, partexprs text
pg_catalog.pg_parameter_acl 6243 r: oid oid!, parname text!, paracl text[]
pg_catalog.pg_policies 0 v: schemaname name, tablename name, policyname name, permissive text, roles name[], cmd text,
  qual text, with_check text
pg_catalog.pg_policy 3256 r: oid oid!, polname name!, polrelid oid!, polcmd char!, polpermissive bool!,
  polroles oid[]!, polqual text, polwithcheck text
pg_catalog.pg_proc 1255 r: oid oid!, proname name!, pronamespace oid!, proowner oid!, prolang oid!, procost float4!,
  prorows float4!, provariadic oid!, prosupport regproc!, prokind char!, prosecdef bool!, proleakproof bool!,
  proisstrict bool!, proretset bool!, provolatile char!, proparallel char!, pronargs int2!, pronargdefaults int2!,
  prorettype oid!, proargtypes oid[]!, proallargtypes oid[], proargmodes char[], proargnames text[],
  proargdefaults text, protrftypes oid[], prosrc text!, probin text, prosqlbody text, proconfig text[], proacl text[]
pg_catalog.pg_publication 6104 r: oid oid!, pubname name!, pubowner oid!, puballtables bool!, pubinsert bool!,
  pubupdate bool!, pubdelete bool!, pubtruncate bool!, pubviaroot bool!
pg_catalog.pg_publication_namespace 6237 r: oid oid!, pnpubid oid!, pnnspid oid!
pg_catalog.pg_publication_rel 6106 r: oid oid!, prpubid oid!, prrelid oid!, prqual text, prattrs int2[]
pg_catalog.pg_publication_tables 0 v: pubname name, schemaname name, tablename name, attnames name[], rowfilter text
pg_catalog.pg_range 3541 r: rngtypid oid!, rngsubtype oid!, rngmultitypid oid!, rngcollation oid!, rngsubopc oid!,
  rngcanonical regproc!, rngsubdiff regproc!
pg_catalog.pg_rewrite 2618 r: oid oid!, rulename name!, ev_class oid!, ev_type char!, ev_enabled char!,
  is_instead bool!, ev_qual text!, ev_action text!
pg_catalog.pg_roles 0 v: rolname name, rolsuper bool, rolinherit bool, rolcreaterole bool, rolcreatedb bool,
  rolcanlogin bool, rolreplication bool, rolconnlimit int4, rolpassword text, rolvaliduntil timestamptz,
  rolbypassrls bool, rolconfig text[], oid oid
pg_catalog.pg_rules 0 v: schemaname name, tablename name, rulename name, definition text
pg_catalog.pg_sequence 2224 r: seqrelid oid!, seqtypid oid!, seqstart int8!, seqincrement int8!, seqmax int8!,
  seqmin int8!, seqcache int8!, seqcycle bool!
pg_catalog.pg_sequences 0 v: schemaname name, sequencename name, sequenceowner name, data_type regtype,
  start_value int8, min_value int8, max_value int8, increment_by int8, cycle bool, cache_size int8, last_value int8
pg_catalog.pg_settings 0 v: name text, setting text, unit text, category text, short_desc text, extra_desc text,
  context text, vartype text, source text, min_val text, max_val text, enumvals text[], boot_val text, reset_val text,
  sourcefile text, sourceline int4, pending_restart bool
pg_catalog.pg_shadow 0 v: usename name, usesysid oid, usecreatedb bool, usesuper bool, userepl bool,
  usebypassrls bool, passwd text, valuntil timestamptz, useconfig text[]
pg_catalog.pg_shdepend 1214 r: dbid oid!, classid oid!, objid oid!, objsubid int4!, refclassid oid!, refobjid oid!,
  deptype char!
pg_catalog.pg_shdescription 2396 r: objoid oid!, classoid oid!, description text!
pg_catalog.pg_shseclabel 3592 r: objoid oid!, classoid oid!, provider text!, label text!
pg_catalog.pg_stat_activity 0 v: datid oid, datname name, pid int4, leader_pid int4, usesysid oid, usename name,
  application_name text, client_addr text, client_hostname text, client_port int4, backend_start timestamptz,
  xact_start timestamptz, query_start timestamptz, state_change timestamptz, wait_event_type text, wait_event text,
  state text, backend_xid int8, backend_xmin int8, query_id int8, query text, backend_type text
pg_catalog.pg_stat_ssl 0 v: pid int4, ssl bool, version text, cipher text, bits int4, client_dn text,
  client_serial numeric, issuer_dn text
pg_catalog.pg_statistic_ext 3381 r: oid oid!, stxrelid oid!, stxname name!, stxnamespace oid!, stxowner oid!,
  stxstattarget int4!, stxkeys int2[]!, stxkind char[]!, stxexprs text
pg_catalog.pg_stats 0 v: schemaname name, tablename name, attname name, inherited bool, null_frac float4,
  avg_width int4, n_distinct float4, most_common_vals text[], most_common_freqs float4[], histogram_bounds text[],
  correlation float4
pg_catalog.pg_subscription 6100 r: oid oid!, subdbid oid!, subskiplsn text!, subname name!, subowner oid!,
  subenabled bool!, subbinary bool!, substream bool!, subtwophasestate char!, subdisableonerr bool!,
  subconninfo text!, subslotname name, subsynccommit text!, subpublications text[]!
pg_catalog.pg_tables 0 v: schemaname name, tablename name, tableowner name, tablespace name, hasindexes bool,
  hasrules bool, hastriggers bool, rowsecurity bool
pg_catalog.pg_tablespace 1213 r: oid oid!, spcname name!, spcowner oid!, spcacl text[], spcoptions text[]
pg_catalog.pg_trigger 2620 r: oid oid!, tgrelid oid!, tgparentid oid!, tgname name!, tgfoid oid!, tgtype int2!,
  tgenabled char!, tgisinternal bool!, tgconstrrelid oid!, tgconstrindid oid!, tgconstraint oid!, tgdeferrable bool!,
  tginitdeferred bool!, tgnargs int2!, tgattr int2[]!, tgargs bytea!, tgqual text, tgoldtable name, tgnewtable name
pg_catalog.pg_type 1247 r: oid oid!, typname name!, typnamespace oid!, typowner oid!, typlen int2!, typbyval bool!,
  typtype char!, typcategory char!, typispreferred bool!, typisdefined bool!, typdelim char!, typrelid oid!,
  typsubscript regproc!, typelem oid!, typarray oid!, typinput regproc!, typoutput regproc!, typreceive regproc!,
  typsend regproc!, typmodin regproc!, typmodout regproc!, typanalyze regproc!, typalign char!, typstorage char!,
  typnotnull bool!, typbasetype oid!, typtypmod int4!, typndims int4!, typcollation oid!, typdefaultbin text,
  typdefault text, typacl text[]
pg_catalog.pg_user 0 v: usename name, usesysid oid, usecreatedb bool, usesuper bool, userepl bool, usebypassrls bool,
  passwd text, valuntil timestamptz, useconfig text[]
pg_catalog.pg_views 0 v: schemaname name, viewname name, viewowner name, definition text
information_schema.administrable_role_authorizations 0 v: grantee name, role_name name, is_grantable varchar
information_schema.applicable_roles 0 v: grantee name, role_name name, is_grantable varchar
information_schema.character_sets 0 v: character_set_catalog name, character_set_schema name, character_set_name name,
  character_repertoire name, form_of_use name, default_collate_catalog name, default_collate_schema name,
  default_collate_name name
information_schema.check_constraints 0 v: constraint_catalog name, constraint_schema name, constraint_name name,
  check_clause varchar
information_schema.columns 0 v: table_catalog name, table_schema name, table_name name, column_name name,
  ordinal_position int4, column_default varchar, is_nullable varchar, data_type varchar,
  character_maximum_length int4, character_octet_length int4, numeric_precision int4, numeric_precision_radix int4,
  numeric_scale int4, datetime_precision int4, interval_type varchar, interval_precision int4,
  character_set_catalog name, character_set_schema name, character_set_name name, collation_catalog name,
  collation_schema name, collation_name name, domain_catalog name, domain_schema name, domain_name name,
  udt_catalog name, udt_schema name, udt_name name, scope_catalog name, scope_schema name, scope_name name,
  maximum_cardinality int4, dtd_identifier name, is_self_referencing varchar, is_identity varchar,
  identity_generation varchar, identity_start varchar, identity_increment varchar, identity_maximum varchar,
  identity_minimum varchar, identity_cycle varchar, is_generated varchar, generation_expression varchar,
  is_updatable varchar
information_schema.constraint_column_usage 0 v: table_catalog name, table_schema name, table_name name,
  column_name name, constraint_catalog name, constraint_schema name, constraint_name name
information_schema.enabled_roles 0 v: role_name name
information_schema.information_schema_catalog_name 0 v: catalog_name name
information_schema.key_column_usage 0 v: constraint_catalog name, constraint_schema name, constraint_name name,
  table_catalog name, table_schema name, table_name name, column_name name, ordinal_position int4,
  position_in_unique_constraint int4
information_schema.referential_constraints 0 v: constraint_catalog name, constraint_schema name, constraint_name name,
  unique_constraint_catalog name, unique_constraint_schema name, unique_constraint_name name, match_option varchar,
  update_rule varchar, delete_rule varchar
information_schema.role_table_grants 0 v: grantor name, grantee name, table_catalog name, table_schema name,
  table_name name, privilege_type varchar, is_grantable varchar, with_hierarchy varchar
information_schema.routines 0 v: specific_catalog name, specific_schema name, specific_name name,
  routine_catalog name, routine_schema name, routine_name name, routine_type varchar, module_catalog name,
  module_schema name, module_name name, udt_catalog name, udt_schema name, udt_name name, data_type varchar,
  character_maximum_length int4, character_octet_length int4, character_set_catalog name, character_set_schema name,
  character_set_name name, collation_catalog name, collation_schema name, collation_name name, numeric_precision int4,
  numeric_precision_radix int4, numeric_scale int4, datetime_precision int4, interval_type varchar,
  interval_precision int4, type_udt_catalog name, type_udt_schema name, type_udt_name name, scope_catalog name,
  scope_schema name, scope_name name, maximum_cardinality int4, dtd_identifier name, routine_body varchar,
  routine_definition varchar, external_name varchar, external_language varchar, parameter_style varchar,
  is_deterministic varchar, sql_data_access varchar, is_null_call varchar, sql_path varchar,
  schema_level_routine varchar, max_dynamic_result_sets int4, is_user_defined_cast varchar,
  is_implicitly_invocable varchar, security_type varchar, to_sql_specific_catalog name, to_sql_specific_schema name,
  to_sql_specific_name name, as_locator varchar, created timestamptz, last_altered timestamptz,
  new_savepoint_level varchar, is_udt_dependent varchar, result_cast_from_data_type varchar,
  result_cast_as_locator varchar, result_cast_char_max_length int4, result_cast_char_octet_length int4,
  result_cast_char_set_catalog name, result_cast_char_set_schema name, result_cast_char_set_name name,
  result_cast_collation_catalog name, result_cast_collation_schema name, result_cast_collation_name name,
  result_cast_numeric_precision int4, result_cast_numeric_precision_radix int4, result_cast_numeric_scale int4,
  result_cast_datetime_precision int4, result_cast_interval_type varchar, result_cast_interval_precision int4,
  result_cast_type_udt_catalog name, result_cast_type_udt_schema name, result_cast_type_udt_name name,
  result_cast_scope_catalog name, result_cast_scope_schema name, result_cast_scope_name name,
  result_cast_maximum_cardinality int4, result_cast_dtd_identifier name
information_schema.schemata 0 v: catalog_name name, schema_name name, schema_owner name,
  default_character_set_catalog name, default_character_set_schema name, default_character_set_name name,
  sql_path varchar
information_schema.sequences 0 v: sequence_catalog name, sequence_schema name, sequence_name name, data_type varchar,
  numeric_precision int4, numeric_precision_radix int4, numeric_scale int4, start_value varchar,
  minimum_value varchar, maximum_value varchar, increment varchar, cycle_option varchar
information_schema.table_constraints 0 v: constraint_catalog name, constraint_schema name, constraint_name name,
  table_catalog name, table_schema name, table_name name, constraint_type varchar, is_deferrable varchar,
  initially_deferred varchar, enforced varchar, nulls_distinct varchar
information_schema.table_privileges 0 v: grantor name, grantee name, table_catalog name, table_schema name,
  table_name name, privilege_type varchar, is_grantable varchar, with_hierarchy varchar
information_schema.tables 0 v: table_catalog name, table_schema name, table_name name, table_type varchar,
  self_referencing_column_name name, reference_generation varchar, user_defined_type_catalog name,
  user_defined_type_schema name, user_defined_type_name name, is_insertable_into varchar, is_typed varchar,
  commit_action varchar
information_schema.views 0 v: table_catalog name, table_schema name, table_name name, view_definition varchar,
  check_option varchar, is_updatable varchar, is_insertable_into varchar, is_trigger_updatable varchar,
  is_trigger_deletable varchar, is_trigger_insertable_into varchar
";
