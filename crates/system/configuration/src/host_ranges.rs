//! Hosts that differ by a number alone: one table of `[[host]]` with a range in its texts stands for all of them.

use crate::problem::Problem;
use crate::source::{Content, Node};

/// Puts each host of a range in the place of the table that stands for them: `name = "node[01-16]"` are sixteen hosts. All ranges of a table
/// are as long, and one text has one range at most. What cannot be is said.
pub(crate) fn expand(root: &mut Node) -> Vec<Problem> {
    let Content::Table(tables) = &mut root.content else { return Vec::new() };
    let Some(Node { content: Content::Array(hosts), .. }) = tables.get_mut("host") else { return Vec::new() };
    let mut problems = Vec::new();
    for (place, host) in core::mem::take(hosts).into_iter().enumerate() {
        match expanded(&host, place) {
            Ok(all) => hosts.extend(all),
            Err(problem) => problems.push(problem),
        }
    }
    problems
}

fn expanded(host: &Node, place: usize) -> Result<Vec<Node>, Problem> {
    let Content::Table(keys) = &host.content else { return Ok(vec![host.clone()]) };
    let mut all: Vec<Node> = Vec::new();
    for (key, node) in keys.iter().filter(|(key, _)| RANGED.contains(&key.as_str())) {
        let Content::String(text) = &node.content else { continue };
        let problem =
            |message: String| Problem { place: node.place.clone(), key: format!("host.{place}.{key}"), message };
        let Some(texts) = texts(text).map_err(problem)? else { continue };
        if all.is_empty() {
            all = vec![host.clone(); texts.len()];
        } else if all.len() != texts.len() {
            let message =
                format!("expected as many as the other ranges of the host have, {}, found {}", all.len(), texts.len());
            return Err(problem(message));
        }
        for (one, text) in all.iter_mut().zip(texts) {
            let Content::Table(keys) = &mut one.content else { unreachable!("a clone of a table") };
            keys.get_mut(key).expect("it is in the table").content = Content::String(text);
        }
    }
    Ok(if all.is_empty() { vec![host.clone()] } else { all })
}

/// The texts that a text with a range such as `[01-16]` or `[1-3,7]` stands for; none if it has no range.
fn texts(text: &str) -> Result<Option<Vec<String>>, String> {
    let Some((before, rest)) = text.split_once('[') else { return Ok(None) };
    let wrong = || format!("expected a range such as \"node[01-16]\" or \"node[1-3,7]\", found {text:?}");
    let (range, behind) = rest.split_once(']').ok_or_else(wrong)?;
    // An address of IPv6 with a port is no range.
    if range.contains(':') {
        return Ok(None);
    }
    let mut all = Vec::new();
    for part in range.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let is_number =
            |text: &str| !text.is_empty() && text.len() <= DIGITS_MAX && text.bytes().all(|b| b.is_ascii_digit());
        if !(is_number(first) && is_number(last)) {
            return Err(wrong());
        }
        let (from, to): (u32, u32) = (first.parse().map_err(|_| wrong())?, last.parse().map_err(|_| wrong())?);
        if from > to || all.len() + (to - from) as usize >= HOSTS_MAX {
            return Err(format!(
                "expected at most {HOSTS_MAX} hosts, from the lower number to the higher, found {text:?}"
            ));
        }
        let width = first.len();
        all.extend((from..=to).map(|number| format!("{before}{number:0width$}{behind}")));
    }
    if behind.contains('[') { Err(wrong()) } else { Ok(Some(all)) }
}

/// The keys of a host that may have a range.
const RANGED: [&str; 4] = ["name", "address", "data", "metrics"];
/// As many as there can be applications.
const HOSTS_MAX: usize = 10_000;
const DIGITS_MAX: usize = 6;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Partition;

    #[test]
    fn a_range_stands_for_each_of_its_numbers() {
        let all = |text| texts(text).unwrap();
        assert_eq!(all("daq-1"), None);
        assert_eq!(all("[::1]:7350"), None);
        assert_eq!(all("n[08-10].lab").unwrap(), ["n08.lab", "n09.lab", "n10.lab"]);
        assert_eq!(all("n[1-2,7]").unwrap(), ["n1", "n2", "n7"]);
        for wrong in ["n[", "n[]", "n[1-]", "n[2-1]", "n[a-b]", "n[1-2][3-4]", "n[1-99999]", "n[1-9999999999]"] {
            assert!(texts(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_ranges_of_a_host_go_together() {
        let of = |host: &str| {
            let text =
                format!("partition.name = \"p\"\nros.count = 4\nsfi.count = 1\n[[host]]\nname = \"n[1-2]\"\n{host}");
            Partition::parse("p.toml", &text, &[]).map_err(|error| error.to_string())
        };
        let hosts = of("data = \"127.0.0.[2-3]\"\nroles = { ros = 2 }\n[[host]]\nname = \"here\"\n").unwrap().host;
        let told: Vec<_> = hosts.iter().map(|host| (host.name.as_str(), host.data.map(|at| at.to_string()))).collect();
        let at = |text: &str| Some(text.to_owned());
        assert_eq!(told, [("n1", at("127.0.0.2")), ("n2", at("127.0.0.3")), ("here", None)]);
        assert_eq!(hosts[1].roles.unwrap().ros, 2);
        let error = of("data = \"127.0.0.[2-4]\"\n").unwrap_err();
        assert!(error.contains("p.toml:") && error.contains("found"), "{error}");
    }
}
