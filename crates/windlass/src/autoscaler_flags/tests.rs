use std::time::Duration;

use autoscaler::options::Mode;

use super::*;

fn parsed(line: &str) -> Result<Settings, Error> {
    let arguments: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
    match parse(&arguments, "me".to_owned())? {
        Request::Run(settings) => Ok(*settings),
        Request::Help => panic!("help"),
    }
}

/// What is typed again as its default changes nothing.
#[test]
fn defaults_are_what_the_table_says() {
    let line: Vec<String> = FLAGS
        .iter()
        .filter(|flag| !flag.default.is_empty())
        .map(|flag| format!("--{}={}", flag.name, flag.default))
        .collect();
    let mut plain = parsed("").unwrap();
    let mut typed = parsed(&line.join(" ")).unwrap();
    // The expanders are made when an iteration begins.
    plain.options.plans.scale_up.expanders.clear();
    typed.options.plans.scale_up.expanders.clear();
    assert_eq!(format!("{plain:?}"), format!("{typed:?}"));
}

#[test]
fn flags_are_written_as_go_takes_them() {
    let settings =
        parsed("-scan-interval 200ms --dry-run --max-nodes-total=7 --leader-elect=false");
    let Settings { options, .. } = settings.unwrap();
    assert_eq!(options.pace.scan_interval, Duration::from_millis(200));
    assert_eq!(options.mode, Mode::DryRun);
    assert_eq!(options.plans.limits.nodes_max, Some(7));
    assert!(!options.is_elected);
}

#[test]
fn upstreams_other_flags_do_nothing_and_are_told() {
    let settings = parsed("--v 4 --logtostderr --nodes=1:10:asg --scan-interval=5s").unwrap();
    assert_eq!(settings.ignored, ["v", "logtostderr", "nodes"]);
    assert_eq!(settings.options.pace.scan_interval, Duration::from_secs(5));
}

/// As klog spells its flags, and Kubernetes' programs take every other.
#[test]
fn underscores_are_dashes() {
    let settings = parsed("--scan_interval=5s --skip_log_headers --log_backtrace_at :0").unwrap();
    assert_eq!(settings.options.pace.scan_interval, Duration::from_secs(5));
    assert_eq!(settings.ignored, ["skip-log-headers", "log-backtrace-at"]);
}

/// Those that came with 1.36 and after it. Seven of them were unknown, so that a command line that works
/// with upstream did not start.
#[test]
fn upstreams_newest_flags_do_not_stop_the_start() {
    let settings = parsed(
        "--node-deletion-candidate-ttl 1h --startup-taint-prefix x/ --allowed-scheduler-names=a \
         --capacity-quotas-enabled --fastpath-binpacking-enabled \
         --capacity-buffer-pod-dry-run-enabled --max-startup-time 20m --salvo-scale-up-budget 1m \
         --scaleup-simulation-for-skipped-node-groups-enabled --enable-graceful-degradation \
         --pending-pods-batching-timeout 4m --scheduler-verbosity 2 \
         --legacy_stderr_threshold_behavior=false --dry-run",
    )
    .unwrap();
    assert_eq!(settings.ignored.len(), 13);
    assert_eq!(settings.options.mode, Mode::DryRun);
}

/// What no release of upstream's knows is a mistake.
#[test]
fn a_flag_that_only_looks_like_upstreams_stops_the_start() {
    for line in ["--node-deletion-in-batch-enabled", "--predicate-parallelism-enabled"] {
        assert!(parsed(line).is_err(), "{line}");
    }
}

#[test]
fn what_is_wrong_is_named() {
    for (line, expected, hint) in [
        (
            "--scan-intervall=5s",
            "unknown flag `--scan-intervall`",
            "did you mean `--scan-interval`?",
        ),
        (
            "--frobnicate",
            "unknown flag `--frobnicate`",
            "`windlass autoscaler run --help` lists every flag",
        ),
        ("--cloud-config", "flag `--cloud-config` needs a value", "write `--cloud-config=<value>`"),
        ("extra", "`extra` is not a flag", "`windlass autoscaler run --help` lists every flag"),
    ] {
        let error = parsed(line).unwrap_err();
        assert_eq!((error.to_string(), error.hint()), (expected.to_owned(), hint.to_owned()));
    }
    let error = parsed("--scan-interval=soon").unwrap_err();
    let expected = "--scan-interval: `soon` is not a duration such as `10s` or `1h30m`";
    assert_eq!(error.to_string(), expected);
    assert!(parsed("--cores-total=5:1").is_err());
    assert!(parsed("--cloud-provider=aws").is_err());
    assert_eq!(parsed("--cloud-provider=simcloud").unwrap().cloud_provider, SIMCLOUD);
}

#[test]
fn names_are_there_once() {
    let mut names: Vec<&str> = FLAGS.iter().map(|flag| flag.name).collect();
    assert!(names.iter().all(|name| foreign::is_switch(name).is_none()));
    names.sort_unstable();
    let count = names.len();
    names.dedup();
    assert_eq!(names.len(), count);
}

#[test]
fn help_names_every_flag() {
    let help = help();
    assert!(FLAGS.iter().all(|flag| help.contains(&format!("--{}", flag.name))));
}
