//! A network that drops datagrams: a network namespace with a loopback interface and a rule of `nft`. It has no name, and is gone
//! with the last process in it, however that ends.

use std::ffi::OsStr;
use std::process::{Command, Stdio};

/// Commands of a shell that make it inside a new namespace, dropping so many in 100 of the datagrams.
pub fn network(percent: u32) -> String {
    format!(
        "set -e; PATH=$PATH:/usr/sbin; ip link set lo up; nft -f - <<'RULES'\ntable inet lossy {{\n chain in {{\n \
         type filter hook input priority 0\n meta l4proto udp numgen random mod 100 < {percent} drop\n }}\n}}\nRULES\n"
    )
}

/// A program, as `"$0" "$@"`, in a namespace that these commands of a shell make; the process is the program's if they end with
/// `exec`.
pub fn in_network(commands: &str, program: &OsStr) -> Command {
    let mut unshare = Command::new("unshare");
    unshare.args(["-n", "sh", "-c", commands]).arg(program);
    unshare
}

/// A program in a network that drops so many in 100 of the datagrams.
pub fn losing(percent: u32, program: &OsStr) -> Command {
    in_network(&(network(percent) + "exec \"$0\" \"$@\""), program)
}

/// Whether such a network can be made here.
///
/// # Errors
///
/// What it takes, and what the system says.
pub fn check() -> Result<(), String> {
    let tried = in_network(&(network(1) + "exit 0"), OsStr::new("sh")).stdin(Stdio::null()).output();
    let reason = match tried {
        Ok(output) if output.status.success() => return Ok(()),
        Ok(output) => String::from_utf8_lossy(&output.stderr).trim().to_owned(),
        Err(error) => format!("unshare: {error}"),
    };
    Err(format!("needs root (CAP_SYS_ADMIN, CAP_NET_ADMIN), unshare, ip and nft (package nftables): {reason}"))
}
