//! A real NATS server, with the configuration that the project ships.

use std::fs::{self, File, Permissions};
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use nix::sys::signal::Signal;
use testkit::TempDir;

use super::client::Client;
use crate::certificates::certificate;
use crate::running::{Job, examples, send, within_deadline};

/// A server that may come and go at one address. Dropping it ends it.
pub(super) struct Server {
    program: PathBuf,
    pub(super) address: String,
    directory: TempDir,
    /// Further ones of the program.
    arguments: Vec<String>,
    child: Option<Child>,
}

impl Server {
    /// One that does not run yet. Without the program the test is skipped by name.
    pub(super) fn absent(test: &str) -> Option<Self> {
        let program = testkit::python(test)?.with_file_name("nats-server");
        if !program.is_file() {
            testkit::skip(test, "no nats-server: run `make python`");
            return None;
        }
        // A server that returns has the same port; so it has a loopback address of its own.
        let [_, high, middle, low] = std::process::id().to_be_bytes();
        let own = Ipv4Addr::new(127, 100 + high, middle, low);
        let address = TcpListener::bind((own, 0)).unwrap().local_addr().unwrap().to_string();
        Some(Self { program, address, directory: TempDir::new("nats"), arguments: Vec::new(), child: None })
    }

    /// One that runs.
    pub(super) fn start(test: &str) -> Option<Self> {
        let mut server = Self::absent(test)?;
        server.come();
        Some(server)
    }

    /// Encrypts from its next start on, with a certificate of its own.
    pub(super) fn encrypts(&mut self) -> PathBuf {
        let [certificate, key] = self.certificate("bus");
        let [certificate_is, key_is] = [&certificate, &key].map(|path| path.display().to_string());
        self.arguments = ["--tls", "--tlscert", &certificate_is, "--tlskey", &key_is].map(str::to_owned).to_vec();
        certificate
    }

    /// A certificate and its key.
    pub(super) fn certificate(&self, of: &str) -> [PathBuf; 2] {
        certificate(self.directory.path(), self.address.split_once(':').unwrap().0, of)
    }

    /// Starts it, and waits until it serves.
    pub(super) fn come(&mut self) {
        assert!(self.child.is_none(), "it runs");
        let (host, port) = self.address.split_once(':').unwrap();
        let said = File::options().create(true).append(true).open(self.directory.join("said")).unwrap();
        let mut command = Command::new(&self.program);
        command
            .arg("-c")
            .arg(examples().join("monitoring/nats.conf"))
            .args(["-a", host, "-p", port])
            .args(&self.arguments);
        for user in ["PUBLISHER", "WATCHER", "READER"] {
            command.env(format!("WEIR_{user}"), password(user));
        }
        let child = command.current_dir(self.directory.path()).stdin(Stdio::null()).stdout(Stdio::null()).stderr(said);
        self.child = Some(child.spawn().unwrap());
        within_deadline("the NATS server serves", || Client::is_greeted(&self.address));
    }

    /// Kills it.
    pub(super) fn go(&mut self) {
        let mut child = self.child.take().expect("it runs");
        child.kill().unwrap();
        child.wait().unwrap();
    }

    pub(super) fn signal(&self, signal: Signal) {
        send(self.child.as_ref().expect("it runs").id().cast_signed(), signal);
    }

    /// One with the login of run control.
    pub(super) fn publisher(&self) -> Client {
        Client::connect(&self.address, "weir-quickstart", &password("PUBLISHER")).unwrap()
    }

    /// One who may only subscribe.
    pub(super) fn watcher(&self) -> Client {
        Client::connect(&self.address, "watcher", &password("WATCHER")).unwrap()
    }

    /// One who may also ask for what is kept.
    pub(super) fn reader(&self) -> Client {
        Client::connect(&self.address, "reader", &password("READER")).unwrap()
    }

    /// The quickstart, which tells this server what is observed.
    pub(super) fn told_by(&self, job: Job) -> Job {
        self.log_in(&format!("weir-quickstart:{}\n", password("PUBLISHER")), 0o600);
        let login = self.login().display().to_string();
        job.set("control.bus", &format!("nats://{}", self.address)).set("control.bus_login", &login)
    }

    /// What run control logs in with from now on.
    pub(super) fn log_in(&self, text: &str, mode: u32) {
        let new = self.directory.join("new-login");
        fs::write(&new, text).unwrap();
        fs::set_permissions(&new, Permissions::from_mode(mode)).unwrap();
        fs::rename(new, self.login()).unwrap();
    }

    pub(super) fn log_in_rightly(&self) {
        self.log_in(&format!("weir-quickstart:{}\n", password("PUBLISHER")), 0o600);
    }

    fn login(&self) -> PathBuf {
        self.directory.join("login")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if self.child.is_some() {
            self.go();
        }
    }
}

fn password(user: &str) -> String {
    format!("of-{user}")
}
