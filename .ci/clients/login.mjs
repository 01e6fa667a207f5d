// Logs in with node-postgres and says who it is: one line, `ok <role>` or `error <SQLSTATE or text>`.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

// The modules are where the caller installed them.
const { Client } = createRequire(process.argv[2] + "/")("pg");
const given = JSON.parse(process.argv[3]);

// What node-postgres has instead of libpq's modes.
function tls(mode) {
  if (mode === "disable") return false;
  const options = { rejectUnauthorized: mode.startsWith("verify") };
  if (given.ca) options.ca = readFileSync(given.ca, "utf8");
  if (mode === "verify-ca") options.checkServerIdentity = () => undefined;
  if (given.certificate) {
    options.cert = readFileSync(given.certificate, "utf8");
    options.key = readFileSync(given.key, "utf8");
  }
  return options;
}

const client = new Client({
  host: given.host,
  port: given.port,
  user: given.user,
  password: given.password,
  database: "postgres",
  ssl: tls(given.sslmode),
  enableChannelBinding: given.channel_binding === "require",
  connectionTimeoutMillis: 20000,
});
try {
  await client.connect();
  const { rows } = await client.query("SELECT current_user AS role, $1::int8 AS seven", [7]);
  if (rows[0].seven !== "7") throw new Error("another number");
  console.log("ok", rows[0].role);
  await client.end();
} catch (error) {
  console.log("error", error.code ?? "", error.message.replaceAll("\n", " "));
  process.exit(0);
}
