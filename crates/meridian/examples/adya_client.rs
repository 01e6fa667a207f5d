//! One client of the workload list-append, for the checker `adya`, which starts several of these
//! (`adya run exec`; see `.ci/run adya`).
//!
//! adya writes a transaction as a line of JSON, `{"value":[["append",3,7],["r",4,null]]}`, and
//! reads what became of it: `{"type":"ok","value":[["append",3,7],["r",4,[1,7]]]}`, `fail` if it is
//! certain that it did not commit, or `info` if nobody can know. adya's own driver for PostgreSQL
//! takes every error at COMMIT for a refusal. That is wrong for 40003 and for a primary that cannot
//! be reached, so this client decides by SQLSTATE.
//!
//! The arguments are the gateways, as connection strings. A list is a row of `lists_0`, `lists_1`
//! or `lists_2`, by its number; each table has its home in another region, so most transactions
//! touch several groups.

use serde_json::{Value, json};
use std::io::{BufRead, Write};
use std::time::Duration;
use tokio_postgres::{Client, Error, NoTls};

const TABLES: i64 = 3;
/// A gateway that was killed says nothing for ever; a transaction that waits for a failover needs
/// about 4 s.
const PATIENCE: Duration = Duration::from_secs(15);
const PAUSE: Duration = Duration::from_millis(200);

enum Ended {
    Committed(Vec<Value>),
    /// Certain not to have committed.
    Refused(String),
    Unknown(String),
}

struct Gateways {
    urls: Vec<String>,
    next: usize,
    client: Option<Client>,
}

impl Gateways {
    /// The present connection, or one to the next gateway that answers.
    async fn client(&mut self) -> Result<&Client, String> {
        if self.client.as_ref().is_none_or(Client::is_closed) {
            let url = &self.urls[self.next % self.urls.len()];
            self.next += 1;
            let connecting = tokio::time::timeout(PATIENCE, tokio_postgres::connect(url, NoTls)).await;
            let (client, connection) = connecting.map_err(|_| "no answer".to_string())?.map_err(|e| e.to_string())?;
            tokio::spawn(connection);
            self.client = Some(client);
        }
        Ok(self.client.as_ref().expect("just connected"))
    }
}

async fn run(client: &Client, steps: &[Value]) -> Result<Vec<Value>, Error> {
    let reads_only = steps.iter().all(|step| step[0] == "r");
    client.batch_execute(if reads_only { "BEGIN READ ONLY" } else { "BEGIN" }).await?;
    let mut done = Vec::new();
    for step in steps {
        let key = step[1].as_i64().expect("adya numbers its keys");
        let table = format!("lists_{}", key.rem_euclid(TABLES));
        if step[0] == "r" {
            let row = client.query_opt(&format!("SELECT v FROM {table} WHERE k = $1"), &[&key]).await?;
            let list = row.map_or_else(String::new, |row| row.get::<_, String>(0));
            let list: Vec<i64> = list.split(',').filter_map(|n| n.parse().ok()).collect();
            done.push(json!(["r", key, list]));
        } else {
            let append = format!(
                "INSERT INTO {table} AS t (k, v) VALUES ($1, $2) ON CONFLICT (k) DO UPDATE SET v = t.v || ',' || excluded.v"
            );
            client.execute(&append, &[&key, &step[2].to_string()]).await?;
            done.push(step.clone());
        }
    }
    Ok(done)
}

async fn transaction(gateways: &mut Gateways, steps: &[Value]) -> Ended {
    let client = match gateways.client().await {
        Ok(client) => client,
        Err(e) => return Ended::Refused(format!("not connected: {e}")),
    };
    // COMMIT was not sent, so it did not commit.
    let done = match tokio::time::timeout(PATIENCE, run(client, steps)).await {
        Ok(Ok(done)) => done,
        Ok(Err(e)) => {
            let rolled_back = tokio::time::timeout(PATIENCE, client.batch_execute("ROLLBACK")).await;
            if !matches!(rolled_back, Ok(Ok(()))) {
                gateways.client = None;
            }
            return Ended::Refused(e.to_string());
        }
        Err(_) => {
            gateways.client = None;
            return Ended::Refused("a statement took too long".into());
        }
    };
    let ended = match tokio::time::timeout(PATIENCE, client.batch_execute("COMMIT")).await {
        Ok(Ok(())) => return Ended::Committed(done),
        Ok(Err(e)) => match e.code().map(|code| code.code().to_string()) {
            Some(code) if code == "40001" || code == "40P01" => return Ended::Refused(e.to_string()),
            code => Ended::Unknown(format!("{code:?}: {e}")),
        },
        Err(_) => Ended::Unknown("COMMIT took too long".into()),
    };
    gateways.client = None;
    ended
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let urls: Vec<String> = std::env::args().skip(1).collect();
    assert!(!urls.is_empty(), "the arguments are the gateways");
    // Each client begins at another gateway.
    let mut gateways = Gateways { next: std::process::id() as usize, urls, client: None };
    for line in std::io::stdin().lock().lines() {
        let asked: Value = serde_json::from_str(&line.expect("adya writes text")).expect("adya writes JSON");
        let steps = asked["value"].as_array().expect("a transaction has steps");
        let answer = match transaction(&mut gateways, steps).await {
            Ended::Committed(done) => json!({ "type": "ok", "value": done }),
            Ended::Refused(why) => {
                // Not at once again: what refused it may still be there.
                tokio::time::sleep(if gateways.client.is_none() { PAUSE } else { Duration::ZERO }).await;
                json!({ "type": "fail", "error": why })
            }
            Ended::Unknown(why) => json!({ "type": "info", "error": why }),
        };
        println!("{answer}");
        std::io::stdout().flush().expect("adya listens");
    }
}
