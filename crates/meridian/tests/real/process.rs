//! Nodes as processes that end when they are dropped.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::Duration;
use tokio::time::Instant;

/// A node that takes longer to serve is broken; builds without optimization on busy machines are
/// slow.
const READY_PATIENCE: Duration = Duration::from_secs(60);
const END_PATIENCE: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(10);

/// The program under test.
pub fn meridian() -> Command {
    Command::new(env!("CARGO_BIN_EXE_meridian"))
}

/// How a node is started; kept to start it again.
#[derive(Clone, Debug)]
pub struct Spec {
    pub dir: PathBuf,
    pub locality: String,
    pub listen: String,
    pub sql_listen: String,
    pub join: Vec<String>,
    /// Further options of the command line.
    pub options: Vec<String>,
}

impl Spec {
    /// A node by itself, on ports that the system picks, without certificates.
    pub fn alone(dir: &Path) -> Spec {
        Spec { options: vec!["--insecure".into()], ..Spec::secure(dir) }
    }

    /// The same with certificates.
    pub fn secure(dir: &Path) -> Spec {
        Spec {
            dir: dir.to_path_buf(),
            locality: "region=eu,zone=a".into(),
            listen: "127.0.0.1:0".into(),
            sql_listen: "127.0.0.1:0".into(),
            join: Vec::new(),
            options: Vec::new(),
        }
    }

    fn command(&self) -> Command {
        let mut command = meridian();
        command.arg("start").arg("--data-dir").arg(&self.dir).args(["--locality", &self.locality]);
        command.args(["--listen", &self.listen, "--sql-listen", &self.sql_listen]);
        command.args(&self.options);
        if !self.join.is_empty() {
            command.args(["--join", &self.join.join(",")]);
        }
        command
    }

    /// Runs a node that is expected to refuse its start, and returns what it says. Ends one that
    /// does not refuse.
    pub async fn refused(&self) -> String {
        let log = Log::new(&self.dir, "refused");
        let mut node = Node { child: self.spawn(&log), log, dir: self.dir.clone(), addr: String::new(), sql_addr: String::new() };
        let status = node.wait().await;
        let text = node.log.text();
        assert!(!status.success(), "it started: {text}");
        text
    }

    fn spawn(&self, log: &Log) -> Child {
        let (out, err) = log.files();
        self.command().stdin(Stdio::null()).stdout(out).stderr(err).spawn().expect("the program starts")
    }

    /// Starts a node and waits until it serves.
    pub async fn start(&self) -> Node {
        self.launch().served().await
    }

    /// Starts a node; its addresses are what it was told.
    pub fn launch(&self) -> Node {
        let log = Log::new(&self.dir, "log");
        Node { child: self.spawn(&log), log, dir: self.dir.clone(), addr: self.listen.clone(), sql_addr: self.sql_listen.clone() }
    }
}

/// What a process prints, in a file beside its directory.
struct Log(PathBuf);

impl Log {
    fn new(dir: &Path, name: &str) -> Log {
        Log(dir.with_extension(name))
    }
    fn files(&self) -> (std::fs::File, std::fs::File) {
        let out = std::fs::File::create(&self.0).expect("a log file");
        let err = out.try_clone().expect("a log file");
        (out, err)
    }
    fn text(&self) -> String {
        String::from_utf8_lossy(&std::fs::read(&self.0).unwrap_or_default()).into_owned()
    }
}

/// A running node.
pub struct Node {
    child: Child,
    log: Log,
    dir: PathBuf,
    /// Where other nodes connect.
    pub addr: String,
    /// Where clients connect: of a secure node the directory of its socket and the port.
    pub sql_addr: String,
}

impl Node {
    /// Waits until it serves.
    pub async fn served(mut self) -> Node {
        let deadline = Instant::now() + READY_PATIENCE;
        loop {
            let text = self.log.text();
            let after = |name: &str| text.lines().find_map(|l| l.strip_prefix(name)).map(|v| v.trim().to_string());
            if let (Some(addr), Some(url)) = (after("nodes "), after("clients ")) {
                self.addr = addr;
                self.sql_addr = url.trim_start_matches("postgresql://root@").trim_end_matches("/defaultdb").to_string();
                let port = self.sql_addr.rsplit_once(':').map_or("", |(_, port)| port);
                if self.dir.join(format!(".s.PGSQL.{port}")).exists() {
                    self.sql_addr = format!("{}:{port}", self.dir.display());
                }
                return self;
            }
            assert!(self.child.try_wait().expect("a child").is_none(), "the node ended: {text}");
            assert!(Instant::now() < deadline, "the node does not serve: {text}");
            tokio::time::sleep(POLL).await;
        }
    }
    pub fn url(&self) -> String {
        format!("postgresql://root@{}/defaultdb", self.sql_addr.replace('/', "%2F"))
    }
    /// What it printed so far.
    pub fn log(&self) -> String {
        self.log.text()
    }
    /// SIGKILL.
    pub fn kill(mut self) {
        self.child.kill().expect("a child that was not waited for");
        self.child.wait().expect("a child");
    }
    /// SIGTERM, and how it ended.
    pub async fn terminate(mut self) -> (ExitStatus, String) {
        self.signal(libc::SIGTERM);
        (self.wait().await, self.log.text())
    }
    /// SIGSTOP: it does nothing any more, and its connections stay open.
    pub fn suspend(&self) {
        self.signal(libc::SIGSTOP);
    }
    /// SIGCONT: it goes on with what it was at, and with what came meanwhile.
    pub fn resume(&self) {
        self.signal(libc::SIGCONT);
    }
    fn signal(&self, signal: libc::c_int) {
        // SAFETY: signals a process that this one started and has not waited for yet.
        assert_eq!(unsafe { libc::kill(self.child.id() as libc::pid_t, signal) }, 0);
    }
    async fn wait(&mut self) -> ExitStatus {
        let deadline = Instant::now() + END_PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait().expect("a child") {
                return status;
            }
            assert!(Instant::now() < deadline, "it does not end: {}", self.log.text());
            tokio::time::sleep(POLL).await;
        }
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
        // A task that panics ends by itself, and its node may go on.
        let text = self.log.text();
        if let Some(line) = text.lines().position(|line| line.contains("panicked at"))
            && !std::thread::panicking()
        {
            panic!("a task of the node panicked: {}", text.lines().skip(line).take(3).collect::<Vec<_>>().join("\n"));
        }
    }
}

/// Runs a command that ends by itself, with `input` piped in.
pub fn run(mut command: Command, input: &str) -> Output {
    let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child = child.expect("the program starts");
    // A shell that leaves early does not read everything.
    let _ = child.stdin.take().expect("piped").write_all(input.as_bytes());
    child.wait_with_output().expect("a child")
}
