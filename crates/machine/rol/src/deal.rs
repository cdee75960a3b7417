//! How links are shared out over read-out systems.

/// Deals links out to `ros_count` read-out systems: each gets a run of neighbours, and their numbers differ by one at most.
///
/// With more systems than links some get none.
///
/// # Panics
/// If `ros_count` is 0.
pub fn deal(source_ids: &[u32], ros_count: usize) -> Vec<Vec<u32>> {
    assert!(ros_count > 0, "a partition has a read-out system");
    let begin = |ros: usize| source_ids.len() * ros / ros_count;
    (0..ros_count).map(|ros| source_ids[begin(ros)..begin(ros + 1)].to_vec()).collect()
}

#[cfg(test)]
mod tests {
    use super::deal;

    #[test]
    fn shares_are_contiguous_and_balanced() {
        let ids: Vec<u32> = (0..163).collect();
        let shares = deal(&ids, 8);
        assert_eq!(shares.concat(), ids);
        assert!(shares.iter().all(|share| (20..=21).contains(&share.len())));
    }

    #[test]
    fn the_last_link_goes_to_the_last_system() {
        for ros_count in 1..=5 {
            assert_eq!(deal(&[7, 8, 9], ros_count).last().and_then(|share| share.last()), Some(&9), "{ros_count}");
        }
    }
}
