//! `windlass bench`: measures a store, beside etcd and the ceilings if asked, stores that share a
//! journal, the labels service and sharding on a cluster, and the task runner and the autoscaler's
//! planners on this machine.

use std::{
    env,
    net::SocketAddr,
    path::{Path, PathBuf},
    process,
    time::Duration,
};

use bench::{
    autoscaler,
    ceiling::{self, Ceiling},
    labels, replicas, sharding,
    store::{self as table, Launch, Options, Place, Role, Running, Scale, Subject},
    tasks,
};
use tokio_util::sync::CancellationToken;

use crate::{
    cli::{
        BenchAutoscalerArgs, BenchInstanceArgs, BenchLabelsArgs, BenchPace, BenchReplicasArgs,
        BenchShardingArgs, BenchStoreArgs, BenchTasksArgs, Output,
    },
    report::{self, Exit, Failure, Outcome},
};

pub(crate) async fn run(arguments: BenchStoreArgs) -> Outcome {
    let options = Options {
        subjects: subjects(&arguments)?,
        scale: if arguments.quick { Scale::quick() } else { Scale::full() },
        rounds: arguments.rounds,
        rows: arguments.rows,
        scratch: arguments.scratch.unwrap_or_else(|| env::temp_dir().join("windlass-bench")),
    };
    let report = table::run(&options, &mut report::words).await.map_err(failed)?;
    match arguments.output {
        Output::Table => report::data(&report.to_string()),
        Output::Json => report::data(&json(&report)?),
    }
}

pub(crate) async fn run_labels(arguments: BenchLabelsArgs) -> Outcome {
    let program = own_program()?;
    let options = if arguments.quick {
        labels::Options::quick(arguments.kubeconfig, program)
    } else {
        labels::Options::full(arguments.kubeconfig, program)
    };
    let options = labels::Options {
        watcher_kubeconfig: arguments.watcher_kubeconfig,
        processor_kubeconfig: arguments.processor_kubeconfig,
        ..options
    };
    let report = labels::run(&options, &mut report::words).await;
    let report = report.map_err(|error| {
        Failure::new(Exit::No, error)
            .with_hint("`windlass labels manifests | kubectl apply -f -` prepares the cluster")
    })?;
    match arguments.output {
        Output::Table => report::data(&report.to_string()),
        Output::Json => report::data(&json(&report)?),
    }
}

pub(crate) async fn run_replicas(arguments: BenchReplicasArgs) -> Outcome {
    let scratch = || env::temp_dir().join("windlass-bench-replicas");
    let options = replicas::Options {
        windlass: own_program()?,
        journal: arguments.journal,
        is_unsafe_allowed: arguments.allow_unsafe,
        engine_pids: arguments.engine_pids,
        etcd: arguments.etcd,
        scratch: arguments.scratch.unwrap_or_else(scratch),
        scale: match arguments.quick {
            true => replicas::Scale::quick(),
            false => replicas::Scale::full(),
        },
    };
    let report = replicas::run(&options, &mut report::words).await;
    let report = report.map_err(|error| {
        Failure::new(Exit::No, error).with_hint("logs of the members are in --scratch")
    })?;
    match arguments.output {
        Output::Table => report::data(&report.to_string()),
        Output::Json => report::data(&json(&report)?),
    }
}

pub(crate) async fn run_tasks(arguments: BenchTasksArgs) -> Outcome {
    let program = own_program()?;
    let scratch = arguments.scratch.unwrap_or_else(|| env::temp_dir().join("windlass-bench-tasks"));
    let options = if arguments.quick {
        tasks::Options::quick(program, scratch)
    } else {
        tasks::Options::full(program, scratch)
    };
    let options = tasks::Options { nodes: arguments.nodes, ..options };
    let report = tasks::run(&options, &mut report::words).await;
    let report = report.map_err(|error| {
        Failure::new(Exit::No, error).with_hint("it needs root; logs of nodes are in --scratch")
    })?;
    match arguments.output {
        Output::Table => report::data(&report.to_string()),
        Output::Json => report::data(&json(&report)?),
    }
}

pub(crate) async fn run_sharding(arguments: BenchShardingArgs) -> Outcome {
    let program = own_program()?;
    let scratch = || env::temp_dir().join(format!("windlass-bench-sharding-{}", process::id()));
    let scratch = arguments.scratch.unwrap_or_else(scratch);
    let options = if arguments.quick {
        sharding::Options::quick(arguments.kubeconfig, program, scratch)
    } else {
        sharding::Options::full(arguments.kubeconfig, program, scratch)
    };
    let report = sharding::run(&options, &mut report::words).await;
    let report = report.map_err(|error| {
        let prepare = "windlass sharder manifests --replicas 0 | kubectl apply -f -";
        Failure::new(Exit::No, error).with_hint(format!("`{prepare}` prepares the cluster"))
    })?;
    match arguments.output {
        Output::Table => report::data(&report.to_string()),
        Output::Json => report::data(&json(&report)?),
    }
}

pub(crate) fn run_autoscaler(arguments: &BenchAutoscalerArgs) -> Outcome {
    let options =
        if arguments.quick { autoscaler::Options::quick() } else { autoscaler::Options::full() };
    let report = autoscaler::run(options, &mut report::words).map_err(failed)?;
    match arguments.output {
        Output::Table => report::data(&report.to_string()),
        Output::Json => report::data(&json(&report)?),
    }
}

/// Works as an instance; how `bench sharding` starts them.
pub(crate) async fn run_instance(arguments: BenchInstanceArgs) -> Outcome {
    let options = sharding::InstanceOptions {
        kubeconfig: arguments.kubeconfig,
        namespace: arguments.namespace,
        ring: arguments.ring,
        id: arguments.id,
        lease: Duration::from_secs(arguments.lease_seconds),
        hold: arguments.hold.map(Duration::from_secs),
        listen: arguments.listen,
        pace: match arguments.pace {
            BenchPace::Busy => sharding::Pace::Busy,
            BenchPace::OnChange => sharding::Pace::OnChange,
            BenchPace::Idle => sharding::Pace::Idle,
        },
    };
    sharding::run_instance(options).await.map_err(failed)
}

/// Serves a ceiling; how `bench store --ceilings` starts them.
pub(crate) async fn run_ceiling(arguments: &[String]) -> Outcome {
    let options = ceiling::Options::parse(arguments).map_err(failed)?;
    let ceiling = Ceiling::bind(&options).await.map_err(failed)?;
    ceiling.run(CancellationToken::new()).await.map_err(failed)
}

fn subjects(arguments: &BenchStoreArgs) -> Result<Vec<Subject>, Failure> {
    let program = own_program()?;
    let own = |role, words: [&str; 2]| Subject { role, place: launched(&program, &words) };
    let mut subjects = vec![match arguments.endpoint {
        Some(address) => Subject { role: Role::Windlass, place: running(address) },
        None => own(Role::Windlass, ["store", "serve"]),
    }];
    if let Some(address) = arguments.against {
        subjects.push(Subject { role: Role::Etcd, place: running(address) });
    } else if let Some(etcd) = &arguments.etcd {
        subjects.push(Subject { role: Role::Etcd, place: launched(etcd, &[]) });
    }
    if arguments.ceilings {
        let ceilings = [Role::Ceiling, Role::DurableCeiling];
        subjects.extend(ceilings.map(|role| own(role, ["bench", "ceiling"])));
    }
    Ok(subjects)
}

fn own_program() -> Result<PathBuf, Failure> {
    env::current_exe().map_err(|error| {
        failed(anyhow::Error::new(error).context("cannot find the program that is running"))
    })
}

fn launched(program: &Path, words: &[&str]) -> Place {
    let args = words.iter().map(|word| (*word).to_owned()).collect();
    Place::Launched(Launch { program: PathBuf::from(program), args })
}

fn running(address: SocketAddr) -> Place {
    Place::Running(Running { address, pid: None })
}

fn json(report: &impl serde::Serialize) -> Result<String, Failure> {
    serde_json::to_string_pretty(report).map_err(|error| failed(error.into()))
}

fn failed(error: anyhow::Error) -> Failure {
    Failure::new(Exit::No, error).with_hint("`--quick` shows in seconds whether every row works")
}
