"""Logs in with psycopg and says who it is: one line, `ok <role>` or `error <SQLSTATE or text>`."""

import json
import sys

import psycopg

case = json.loads(sys.argv[1])
options = {
    "host": case["host"],
    "port": case["port"],
    "user": case["user"],
    "password": case["password"],
    "dbname": "postgres",
    "sslmode": case["sslmode"],
    "sslnegotiation": case.get("negotiation", "postgres"),
    "channel_binding": case.get("channel_binding", "prefer"),
    "connect_timeout": 20,
}
if "ca" in case:
    options["sslrootcert"] = case["ca"]
if "certificate" in case:
    options |= {"sslcert": case["certificate"], "sslkey": case["key"]}
try:
    with psycopg.connect(**options) as connection:
        role, seven = connection.execute("SELECT current_user, %s::int8", (7,)).fetchone()
        assert seven == 7
        print("ok", role)
except psycopg.Error as error:
    # libpq keeps no SQLSTATE of a refused login; its text names what the server said.
    print("error", error.sqlstate or str(error).replace("\n", " "))
