//! Processes and their sockets, as `/proc` shows them.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;

/// An environment variable that all processes of one run inherit; its value is the directory of the run.
pub(crate) const MARK: &str = "WEIR_TEST_DIRECTORY";

/// The direct children of a process.
pub(crate) fn of(parent: i32) -> Vec<i32> {
    all().into_iter().filter(|pid| parent_of(*pid) == Some(parent)).collect()
}

/// All living processes of the run of a directory, without a `weir host` that stays.
pub(crate) fn marked(directory: &Path) -> Vec<i32> {
    let mark = format!("{MARK}={}", directory.display());
    let is_marked = |pid: &i32| {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|variable| variable == mark.as_bytes()) && !stays(*pid)
    };
    all().into_iter().filter(is_marked).collect()
}

/// Whether it is a `weir host`.
pub(crate) fn stays(pid: i32) -> bool {
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    line.split(|byte| *byte == 0).nth(1) == Some(b"host")
}

/// The application that a child process is.
pub(crate) fn name(pid: i32) -> Option<String> {
    let line = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let mut words = line.split(|byte| *byte == 0);
    words.find(|word| *word == b"--name")?;
    String::from_utf8(words.next()?.to_vec()).ok()
}

/// The TCP sockets on which a process listens, with the number by which the kernel knows each.
pub(crate) fn listening(pid: i32) -> Vec<(SocketAddr, u64)> {
    let Ok(entries) = fs::read_dir(format!("/proc/{pid}/fd")) else { return Vec::new() };
    let links = entries.flatten().filter_map(|entry| fs::read_link(entry.path()).ok());
    let own: Vec<u64> =
        links.filter_map(|link| link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()).collect();
    all_listening().into_iter().filter(|(_, inode)| own.contains(inode)).collect()
}

/// All TCP sockets of this machine that listen on IPv4.
pub(crate) fn all_listening() -> Vec<(SocketAddr, u64)> {
    let table = fs::read_to_string("/proc/net/tcp").unwrap();
    table.lines().skip(1).filter_map(socket).collect()
}

/// Memory that a process has in use, in bytes; 0 if it has ended.
pub(crate) fn resident_bytes(pid: i32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok()).map_or(0, |kb| kb << 10)
}

/// Memory that a process has at this moment, in bytes.
pub(crate) fn bytes_now(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().strip_suffix(" kB").unwrap().parse::<u64>().unwrap() << 10
}

fn socket(line: &str) -> Option<(SocketAddr, u64)> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let [_, local, _, LISTEN, _, _, _, _, _, inode, ..] = fields[..] else { return None };
    let (address, port) = local.split_once(':')?;
    let address = u32::from_str_radix(address, 16).ok()?.to_le_bytes();
    Some(((address, u16::from_str_radix(port, 16).ok()?).into(), inode.parse().ok()?))
}

fn all() -> Vec<i32> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

fn parent_of(pid: i32) -> Option<i32> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("PPid:"))?.trim().parse().ok()
}

/// The state of a listening socket in `/proc/net/tcp`.
const LISTEN: &str = "0A";
