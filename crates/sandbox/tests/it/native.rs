//! Containers on this machine's kernel. They need root: without it each test is skipped by name and
//! reason, and under continuous integration it fails.

#[expect(unsafe_code, reason = "a container is made by a process of one thread, which a fork is")]
pub(crate) mod alone;
mod ending;
mod host_view;
mod isolation;
mod limits;
mod orphans;
mod scene;

mod suite {
    sandbox::runtime_suite!(super::holds);
}

fn holds(obligation: &str) {
    if alone::is_root(obligation) {
        crate::suites::holds_in_own_process("native", obligation);
    }
}
