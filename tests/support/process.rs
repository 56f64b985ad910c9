//! Child processes that never outlive the tests.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Ends the program as if killed when the other end of stdin is closed, which also happens when the tests are killed.
const KEEPER: &str =
    r#"log=$1; shift; exec 3<&0; "$@" >"$log" 2>&1 <&3 & echo $!; read -r _; kill -9 $! 2>/dev/null; wait"#;

/// A program under a keeper; killed when dropped.
pub struct Kept {
    keeper: Child,
    pid: u32,
}

impl Kept {
    /// Starts `command`; what it prints goes to `log`.
    pub fn start(command: &Command, log: &Path) -> Self {
        let mut shell = Command::new("sh");
        shell.arg("-c").arg(KEEPER).arg("keeper").arg(log).arg(command.get_program()).args(command.get_args());
        for (name, value) in command.get_envs() {
            shell.env(name, value.unwrap_or_default());
        }
        shell.stdin(Stdio::piped()).stdout(Stdio::piped()).process_group(0);
        let mut keeper = shell.spawn().expect("a shell");
        let mut line = String::new();
        BufReader::new(keeper.stdout.take().expect("it is piped")).read_line(&mut line).expect("the keeper's line");
        let pid = line.trim().parse().expect("a process id");
        Self { keeper, pid }
    }

    pub fn signal(&self, name: &str) {
        // A program that has ended already has had its signal.
        let _ = Command::new("kill").arg(format!("-{name}")).arg(self.pid.to_string()).stderr(Stdio::null()).status();
    }

    /// Whether it still runs; one that ended and was not waited for does not.
    pub fn is_running(&self) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.pid)).unwrap_or_default();
        stat.rsplit(')').next().is_some_and(|rest| !rest.trim_start().starts_with('Z') && !rest.is_empty())
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.signal("CONT");
        self.signal("KILL");
        drop(self.keeper.stdin.take());
        self.keeper.wait().expect("the keeper ends");
    }
}

/// The end of a log, for a test that failed.
pub fn end_of(log: &Path) -> String {
    let lines: Vec<_> =
        File::open(log).map(|file| BufReader::new(file).lines().map_while(Result::ok).collect()).unwrap_or_default();
    lines[lines.len().saturating_sub(60)..].join("\n")
}
