create database d primary region "us-east1";
----

show regions from database d;
----

create database e regions "us-east1";
----

create database e primary region "us-east1" regions "mars";
----

create database e primary region "us-east1" regions "europe-west1", "europe-west1";
----

create database e primary region "us-east1" survive region failure;
----

create database e primary region "us-east1" secondary region "us-east1";
----

create database plain;
----

alter database plain add region "europe-west1";
----

alter database plain drop region "us-east1";
----

alter database plain survive region failure;
----

alter database plain placement restricted;
----

alter database plain set secondary region "europe-west1";
----

alter database d add region "mars";
----

alter database d add region "us-east1";
----

alter database d add region if not exists "us-east1";
----

alter database d set primary region "europe-west1";
----

alter database d add region "europe-west1";
----

show survival goal from database d;
----

alter database d survive region failure;
----

alter database d add region "asia-northeast1";
----

alter database d survive region failure;
----

show survival goal from database d;
----

alter database d placement restricted;
----

alter database d drop region "asia-northeast1";
----

alter database d survive zone failure;
----

alter database d placement restricted;
----

alter database d survive region failure;
----

show zone configuration from database d;
----

alter database d placement default;
----

alter database d set secondary region "us-east1";
----

alter database d set secondary region "asia-northeast1";
----

show regions from database d;
----

alter database d drop region "asia-northeast1";
----

alter database d set primary region "asia-northeast1";
----

alter database d drop secondary region;
----

alter database d drop secondary region;
----

alter database d drop secondary region if exists;
----

alter database d drop region "us-east1";
----

alter database d drop region "mars";
----

alter database d drop region if exists "mars";
----

alter database d drop region "asia-northeast1";
----

alter database d set primary region "europe-west1";
----

show regions from database d;
----

show zone configuration from database d;
----

show regions from all databases;
----

begin;
----

alter database d add region "asia-northeast1";
----

rollback;
----

alter database d drop region "us-east1";
----

alter database d drop region "europe-west1";
----

show regions from database d;
----

show survival goal from database d;
----

alter database d set primary region "us-east1";
----

show regions;
----

drop database d;
----
