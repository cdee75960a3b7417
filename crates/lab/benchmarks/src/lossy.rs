//! Networks that lose datagrams: a network namespace whose loopback interface drops some. A rule of `nft` drops
//! them, or the buffer of an output port that does not hold them. The namespace has no name, and is gone with the
//! last process in it, however that ends.

use std::ffi::OsStr;
use std::process::{Command, Stdio};

/// Commands of a shell that make it inside a new namespace, dropping so many in 100 of the datagrams.
pub fn network(percent: u32) -> String {
    format!(
        "{LOOPBACK}nft -f - <<'RULES'\ntable inet lossy {{\n chain in {{\n type filter hook input priority 0\n meta \
         l4proto udp numgen random mod 100 < {percent} drop\n }}\n}}\nRULES\n"
    )
}

/// The same where all frames pass through an output port of so many Mbit/s, which drops those that its buffer does not
/// hold. A burst of [`BURST_BYTES`] passes without waiting.
pub fn port(megabits_per_s: u32, buffer_bytes: u32) -> String {
    format!(
        "{LOOPBACK}tc qdisc add dev lo root tbf rate {megabits_per_s}mbit burst {BURST_BYTES} limit {buffer_bytes}\n"
    )
}

/// A program, as `"$0" "$@"`, in a namespace that these commands of a shell make; the process is the program's if they end with
/// `exec`.
pub fn in_network(commands: &str, program: &OsStr) -> Command {
    let mut unshare = Command::new("unshare");
    unshare.args(["-n", "sh", "-c", commands]).arg(program);
    unshare
}

/// Whether a network that drops datagrams by a rule can be made here.
///
/// # Errors
///
/// What it takes, and what the system says.
pub fn check() -> Result<(), String> {
    can_be_made(&network(1), "nft (package nftables)")
}

/// Whether a network with an output port can be made here.
///
/// # Errors
///
/// What it takes, and what the system says.
pub fn check_port() -> Result<(), String> {
    can_be_made(&port(1000, BURST_BYTES), "tc (package iproute2)")
}

fn can_be_made(commands: &str, tool: &str) -> Result<(), String> {
    let tried = in_network(&format!("{commands}exit 0"), OsStr::new("sh")).stdin(Stdio::null()).output();
    let reason = match tried {
        Ok(output) if output.status.success() => return Ok(()),
        Ok(output) => String::from_utf8_lossy(&output.stderr).trim().to_owned(),
        Err(error) => format!("unshare: {error}"),
    };
    Err(format!("needs root (CAP_SYS_ADMIN, CAP_NET_ADMIN), unshare, ip and {tool}: {reason}"))
}

const LOOPBACK: &str = "set -e; PATH=$PATH:/usr/sbin; ip link set lo up; ";
/// More than the longest frame of a loopback interface, which would not pass else.
pub const BURST_BYTES: u32 = 70_000;
