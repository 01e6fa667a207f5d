-- postgres: same
set client_encoding = 'utf-8';
----
(SET)

show client_encoding;
----
client_encoding
UTF8
(SHOW)

set client_encoding to '''UTF8''';
----
(SET)

show client_encoding;
----
client_encoding
UTF8
(SHOW)

set client_encoding = 'Unicode';
----
(SET)

show client_encoding;
----
client_encoding
UTF8
(SHOW)

set names 'utf_8';
----
(SET)

show client_encoding;
----
client_encoding
UTF8
(SHOW)

