//! Applications by name, in words that stay short however many they are.

use std::time::Duration;

use crate::human::time;
use crate::said::Said;
use crate::waiting::NAMED;

/// The first of them.
pub(super) fn few(names: &[impl AsRef<str>]) -> String {
    let (named, others) = names.split_at(names.len().min(NAMED));
    let named = named.iter().map(AsRef::as_ref).collect::<Vec<&str>>().join(", ");
    if others.is_empty() { named } else { format!("{named} and {} more", others.len()) }
}

/// Whether a host that is lost has led to it.
pub(super) fn is_of_lost_host(said: &Said) -> bool {
    said.causes.first().is_some_and(|cause| cause.starts_with("host "))
}

/// Texts that begin with one of the names. Those that say the same of a host that is lost become one.
pub(super) fn folded(all: Vec<Said>, names: &[String]) -> Vec<Said> {
    let of_lost_host = |said: &Said| {
        let is_it = |name: &&String| said.text.strip_prefix(name.as_str()).is_some_and(|rest| rest.starts_with(' '));
        let name = names.iter().find(is_it).filter(|_| is_of_lost_host(said))?;
        Some((name.clone(), said.text[name.len()..].to_owned()))
    };
    let mut folded: Vec<(Vec<String>, Said)> = Vec::new();
    for said in all {
        let Some((name, rest)) = of_lost_host(&said) else {
            folded.push((Vec::new(), said));
            continue;
        };
        let said = Said { text: rest, ..said };
        match folded.iter_mut().find(|(_, before)| *before == said) {
            Some((names, _)) => names.push(name),
            None => folded.push((vec![name], said)),
        }
    }
    let together = |(names, said): (Vec<String>, Said)| {
        let text = match names.len() {
            0 | 1 => names.concat() + &said.text,
            count => {
                let rest = said.text.replace("; it is ", "; they are ");
                format!("{}{rest} ({count} applications)", few(&names))
            }
        };
        Said { text, ..said }
    };
    folded.into_iter().map(together).collect()
}

/// Those that live on a host and do not answer.
pub(super) fn silent(names: &[String], host: Option<&str>, silent: Duration, lost_after: Duration) -> String {
    let (has, they_hang, they_are) = match names {
        [_] => ("has", "it hangs or gets no processor", "it is"),
        _ => ("have", "they hang or get no processor", "they are"),
    };
    let host = host.map(|host| format!(" on host {host}")).unwrap_or_default();
    let [silent, lost_after] = [silent, lost_after].map(|duration| time(duration.as_secs_f64()));
    format!(
        "{}{host} {has} said nothing for {silent}: {they_hang}; after {lost_after} {they_are} ended as lost \
         (processes.hang_timeout)",
        few(names)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(count: usize) -> Vec<String> {
        (1..=count).map(|number| format!("sfi-{number}")).collect()
    }

    #[test]
    fn of_many_the_first_are_named() {
        assert_eq!(few(&of(2)), "sfi-1, sfi-2");
        assert_eq!(few(&of(11)), "sfi-1, sfi-2, sfi-3, sfi-4, sfi-5, sfi-6, sfi-7, sfi-8 and 3 more");
        assert_eq!(few(&of(0)), "");
    }

    #[test]
    fn a_host_that_is_lost_has_one_sentence_and_others_keep_theirs() {
        let because =
            |said: Said, causes: &[&str]| said.because(causes.iter().map(|&cause| cause.to_owned()).collect());
        let lost = |text: &str| because(Said::warning(text), &["host b is lost", "its agent is gone"]);
        let died = because(Said::error("sfi-1 died; the run ends"), &["killed by SIGKILL"]);
        let others = [died, Said::notice("a note")];
        let each = |name: &String| lost(&format!("{name} died; it is started again"));
        let all = of(3).iter().map(each).chain(others.clone()).collect();
        let together = lost("sfi-1, sfi-2, sfi-3 died; they are started again (3 applications)");
        assert_eq!(folded(all, &of(3)), [&[together], &others[..]].concat());
        let one = vec![lost("sfi-1 died; it is started again")];
        assert_eq!(folded(one.clone(), &of(1)), one);
    }

    #[test]
    fn those_of_a_host_that_are_silent_have_one_sentence() {
        let [short, long] = [1500, 30_000].map(Duration::from_millis);
        let one = "sfi-1 has said nothing for 1.50 s: it hangs or gets no processor; after 30 s it is ended as lost \
                   (processes.hang_timeout)";
        assert_eq!(silent(&of(1), None, short, long), one);
        let two = "sfi-1, sfi-2 on host b have said nothing for 30 s: they hang or get no processor; after 30 s they are \
                   ended as lost (processes.hang_timeout)";
        assert_eq!(silent(&of(2), Some("b"), long, long), two);
    }
}
