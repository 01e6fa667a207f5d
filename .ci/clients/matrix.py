#!/usr/bin/env python3
"""Logins of other projects' drivers at a secure node: modes of TLS, passwords, certificates, a
man in the middle.

    matrix.py MERIDIAN TOOLS

MERIDIAN is the binary; TOOLS a directory that keeps the drivers from one run to the next. A driver
that cannot be installed is listed as SKIPPED with the reason. The exit status is 0 when every case
that ran had the expected result.
"""

import base64
import contextlib
import json
import os
import pathlib
import re
import shutil
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
PSYCOPG, NODE_POSTGRES, PGX, PGJDBC = "3.3.9", "8.16.3", "v5.13.0", "42.7.8"


class Skipped(Exception):
    """Why a driver cannot be used here."""


def install(*command, **options):
    """Runs a step of an installation; what goes wrong is a reason to skip the driver."""
    if not shutil.which(command[0]):
        raise Skipped(f"{command[0]} is not installed")
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, **options)
    except subprocess.TimeoutExpired as late:
        raise Skipped(f"{command[0]} does not end") from late
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip().splitlines()
        raise Skipped(f"{command[0]}: {said[-1] if said else done.returncode}")


# --- the drivers: each makes a command of a case


def psycopg(tools):
    home = tools / f"psycopg-{PSYCOPG}"
    python = home / "bin/python3"
    if not (home / "installed").exists():
        install(sys.executable, "-m", "venv", str(home))
        install(str(python), "-m", "pip", "install", "-q", f"psycopg[binary]=={PSYCOPG}")
        (home / "installed").touch()
    return lambda case: [str(python), str(HERE / "login.py"), json.dumps(case)]


def node_postgres(tools):
    home = tools / f"node-postgres-{NODE_POSTGRES}"
    if not (home / "installed").exists():
        home.mkdir(parents=True, exist_ok=True)
        install("npm", "install", "--prefix", str(home), f"pg@{NODE_POSTGRES}")
        (home / "installed").touch()
    return lambda case: ["node", str(HERE / "login.mjs"), str(home), json.dumps(case)]


def pgx(tools):
    home = tools / f"pgx-{PGX}"
    home.mkdir(parents=True, exist_ok=True)
    shutil.copy(HERE / "login.go", home / "main.go")
    if not (home / "go.sum").exists():
        (home / "go.mod").unlink(missing_ok=True)
        install("go", "mod", "init", "login", cwd=home)
        install("go", "get", f"github.com/jackc/pgx/v5@{PGX}", cwd=home)
    install("go", "build", "-o", "login", ".", cwd=home)
    return lambda case: [str(home / "login"), json.dumps(case)]


def pgjdbc(tools):
    home = tools / f"pgjdbc-{PGJDBC}"
    home.mkdir(parents=True, exist_ok=True)
    jar = home / f"postgresql-{PGJDBC}.jar"
    if not (home / "installed").exists():
        copy = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy"
        install("mvn", "-q", "-B", copy, f"-Dartifact=org.postgresql:postgresql:{PGJDBC}", f"-DoutputDirectory={home}")
        (home / "installed").touch()
    install("javac", "-d", str(home), str(HERE / "Login.java"))

    def command(case):
        names = {
            "user": "user",
            "password": "password",
            "sslmode": "sslmode",
            "ca": "sslrootcert",
            "certificate": "sslcert",
            "key_der": "sslkey",
            "negotiation": "sslNegotiation",
            "channel_binding": "channelBinding",
        }
        properties = [f"{name}={case[key]}" for key, name in names.items() if key in case]
        arguments = [case["host"], str(case["port"]), *properties, "loginTimeout=20"]
        return ["java", "-XX:TieredStopAtLevel=1", "-cp", f"{home}:{jar}", "Login", *arguments]

    return command


DRIVERS = {"psycopg": psycopg, "node-postgres": node_postgres, "pgx": pgx, "pgjdbc": pgjdbc}
# What a driver does not have: node-postgres negotiates TLS in one way, knows two modes less, and
# compares the certificate with `localhost` where it is given an address.
LACKS = {"node-postgres": {"allow", "prefer", "direct", "another address"}}


# --- the cases


def cases(node, between, certs):
    """Names, cases, and what the line of the client must match."""
    good, foreign = str(certs["ca"]), str(certs["foreign"])
    app = {"host": "127.0.0.1", "port": node, "user": "app", "password": "a secret"}
    alice = app | {"user": "alice", "password": "", "sslmode": "verify-full", "ca": good}
    of = {}
    for who in ("alice", "bob"):
        of[who] = {"certificate": str(certs[who]), "key": str(certs[f"{who} key"]), "key_der": str(certs[f"{who} der"])}
    in_the_middle = app | {"port": between["middle"]}
    elsewhere = app | {"host": "127.0.0.2", "port": between["elsewhere"], "ca": good}
    refused = r"error .*(28000|no pg_hba\.conf entry|requires a valid client certificate)"
    wrong = r"error .*(28P01|password authentication failed)"
    # A handshake that fails, or a proof of the password that does not fit the connection.
    broken = r"error (?!.*password authentication failed for user).*"
    for mode in ("allow", "prefer", "require", "verify-ca", "verify-full"):
        yield mode, app | {"sslmode": mode, "ca": good}, "ok app$"
    yield "disable", app | {"sslmode": "disable"}, refused
    yield "wrong password", app | {"sslmode": "verify-full", "ca": good, "password": "another"}, wrong
    yield "unknown role", app | {"sslmode": "verify-full", "ca": good, "user": "nobody"}, wrong
    yield "another authority, verify-ca", app | {"sslmode": "verify-ca", "ca": foreign}, broken
    yield "another authority, verify-full", app | {"sslmode": "verify-full", "ca": foreign}, broken
    yield "another address, verify-ca", elsewhere | {"sslmode": "verify-ca"}, "ok app$"
    yield "another address, verify-full", elsewhere | {"sslmode": "verify-full"}, broken
    bound = app | {"sslmode": "require", "channel_binding": "require"}
    yield "channel binding", bound, "ok app$"
    yield "channel binding, wrong password", bound | {"password": "another"}, wrong
    yield "direct", app | {"sslmode": "require", "negotiation": "direct"}, "ok app$"
    yield "certificate", alice | of["alice"], "ok alice$"
    yield "no certificate", alice, refused
    yield "certificate of another role", alice | of["bob"], r"error .*(28000|certificate authentication failed)"
    yield "man in the middle, verify-full", in_the_middle | {"sslmode": "verify-full", "ca": good}, broken
    yield "man in the middle, channel binding", in_the_middle | {"sslmode": "require", "channel_binding": "require"}, r"error .*"


def needs(case):
    """What a case needs that not every driver has."""
    address = {"another address"} if case["host"] != "127.0.0.1" and case["sslmode"] == "verify-full" else set()
    return address | {case["sslmode"]} | {case.get("negotiation")}


# --- what is between a client and the node


def pump(source, sink):
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            sink.sendall(data)
    for end in (source, sink):
        with contextlib.suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)


def serve(address, handle):
    """Listens, and gives each connection to a thread. Returns the port."""
    listener = socket.create_server((address, 0))

    def accept():
        while True:
            client, _ = listener.accept()
            threading.Thread(target=handle, args=(client,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    return listener.getsockname()[1]


def both_ways(client, server):
    threading.Thread(target=pump, args=(server, client), daemon=True).start()
    pump(client, server)


def forwarder(node):
    """Passes bytes on, at another address than the one in the node's certificate."""
    return serve("127.0.0.2", lambda client: both_ways(client, socket.create_connection(("127.0.0.1", node))))


def man_in_the_middle(node, certificate, key):
    """Ends the client's TLS with a certificate of its own, and opens another to the node."""
    as_server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    as_server.load_cert_chain(certificate, key)
    as_client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    as_client.check_hostname, as_client.verify_mode = False, ssl.CERT_NONE
    request = (8).to_bytes(4, "big") + (80877103).to_bytes(4, "big")

    def handle(client):
        with contextlib.suppress(OSError):
            assert client.recv(8, socket.MSG_WAITALL) == request
            client.sendall(b"S")
            server = socket.create_connection(("127.0.0.1", node))
            server.sendall(request)
            assert server.recv(1) == b"S"
            both_ways(as_server.wrap_socket(client, server_side=True), as_client.wrap_socket(server))

    return serve("127.0.0.1", handle)


# --- the run


def meridian(binary, *arguments, **options):
    return subprocess.run([binary, *arguments], check=True, capture_output=True, text=True, timeout=60, **options).stdout


def started(binary, scratch):
    """A node, and the port of its clients."""
    data = scratch / "node"
    command = [binary, "start", "--data-dir", str(data), "--listen", "127.0.0.1:0", "--sql-listen", "127.0.0.1:0"]
    with open(scratch / "out", "w") as out, open(scratch / "err", "w") as err:
        node = subprocess.Popen(command, stdout=out, stderr=err)
    for _ in range(600):
        found = re.search(r"^clients .*?:(\d+)", (scratch / "out").read_text(), re.M)
        if found:
            return node, int(found[1])
        if node.poll() is not None:
            break
        time.sleep(0.1)
    node.kill()
    raise SystemExit(f"the node does not serve: {(scratch / 'err').read_text()}")


SETUP = """
CREATE ROLE app LOGIN PASSWORD 'a secret';
CREATE ROLE alice LOGIN;
ALTER SYSTEM SET hba_rules = '
local all all peer
hostssl all alice all cert
hostssl all all all scram-sha-256
';
"""


def certificates(binary, scratch):
    own = scratch / "node/certs"
    foreign = scratch / "foreign"
    meridian(binary, "cert", "create-ca", "--certs-dir", str(foreign))
    meridian(binary, "cert", "create-node", "--certs-dir", str(foreign), "--into", str(scratch / "middle"), "--id", "1")
    found = {"ca": own / "ca.crt", "foreign": foreign / "ca.crt"}
    found |= {"middle": scratch / "middle/node.crt", "middle key": scratch / "middle/node.key"}
    for who in ("alice", "bob"):
        meridian(binary, "cert", "create-client", "--certs-dir", str(own), "--into", str(scratch / who), who)
        found[who] = scratch / who / f"client.{who}.crt"
        found[f"{who} key"] = scratch / who / f"client.{who}.key"
        # The form in which pgjdbc reads keys.
        body = "".join(line for line in found[f"{who} key"].read_text().splitlines() if "-" not in line)
        found[f"{who} der"] = scratch / who / "key.der"
        found[f"{who} der"].write_bytes(base64.b64decode(body))
    return found


def main():
    binary, tools = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2]).resolve()
    tools.mkdir(parents=True, exist_ok=True)
    failures = ran = 0
    with tempfile.TemporaryDirectory() as folder:
        scratch = pathlib.Path(folder)
        node, port = started(binary, scratch)
        try:
            meridian(binary, "sql", "--data-dir", str(scratch / "node"), input=SETUP)
            certs = certificates(binary, scratch)
            between = {
                "elsewhere": forwarder(port),
                "middle": man_in_the_middle(port, certs["middle"], certs["middle key"]),
            }
            # No files of whoever runs this.
            environment = {k: v for k, v in os.environ.items() if not k.startswith("PG")} | {"HOME": str(scratch)}
            for driver, prepare in DRIVERS.items():
                try:
                    command = prepare(tools)
                except Skipped as why:
                    print(f"SKIPPED {driver}: {why}")
                    continue
                good = 0
                for name, case, expected in cases(port, between, certs):
                    if needs(case) & LACKS.get(driver, set()):
                        continue
                    done = subprocess.run(command(case), capture_output=True, text=True, timeout=60, env=environment)
                    line = done.stdout.strip() or done.stderr.strip()
                    if re.match(expected, line):
                        good += 1
                    else:
                        failures += 1
                        print(f"FAILED {driver}, {name}: expected {expected!r}, got {line!r}")
                ran += good
                print(f"{driver}: {good} cases as expected")
            assert node.poll() is None, "the node has ended"
        finally:
            node.terminate()
            node.wait(60)
    print(f"{ran} cases, {failures} failures")
    raise SystemExit(1 if failures else 0)


if __name__ == "__main__":
    main()
