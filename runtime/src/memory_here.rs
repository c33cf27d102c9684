//! How much memory this process can have: what the quota `memory` is unless somebody says.

/// Bytes that a node may hold for its peers unless somebody says how many: a quarter of what this process can have.
pub(crate) fn memory_here() -> usize {
    let most = [machine_memory(), group_memory(), address_space()].into_iter().flatten().min();
    usize::try_from(most.unwrap_or(1 << 30) / 4).unwrap_or(usize::MAX)
}

/// Memory of the machine.
fn machine_memory() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? << 10)
}

/// The least that this process's control group, or one above it, allows.
fn group_memory() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    let own = text.lines().find_map(|line| line.strip_prefix("0::"))?.trim().trim_start_matches('/');
    let limits = std::path::Path::new(own).ancestors().filter_map(|group| {
        let file = std::path::Path::new("/sys/fs/cgroup").join(group).join("memory.max");
        // "max", where there is no limit.
        std::fs::read_to_string(file).ok()?.trim().parse::<u64>().ok()
    });
    limits.min()
}

/// What the process may map.
fn address_space() -> Option<u64> {
    rustix::process::getrlimit(rustix::process::Resource::As).current
}

#[cfg(test)]
mod tests {
    #[test]
    fn memory_of_this_process_is_known() {
        assert!(super::memory_here() > 1 << 20);
    }
}
