//! What the commands of all Kubernetes services do alike: finding the cluster that is meant, naming
//! themselves, printing answers.

pub(crate) mod print;

use std::{
    env,
    path::{Path, PathBuf},
};

use jiff::SignedDuration;
use kubekit::{
    client::{self, Cluster, Repeats},
    metrics::Requests,
};
use uuid::Uuid;

use crate::{
    cli::kube::ConnectArgs,
    report::{Exit, Failure},
};

/// Digits of chance in an identity: two commands of one host at once differ.
const IDENTITY_DIGITS: usize = 8;

/// What of a host's name fits beside them into an identity.
const HOST_CHARACTERS_MAX: usize = 40;

/// Reads credentials, for a command that asks and ends; talks to nobody yet.
pub(crate) async fn open(arguments: &ConnectArgs) -> Result<Cluster, Failure> {
    // A server that is busy for a moment is asked again; the services judge that themselves.
    let repeats = Repeats::WhenBusy;
    let options = client::Options { repeats, ..client_options(arguments) };
    Cluster::open(options, Requests::default()).await.map_err(no_cluster)
}

pub(crate) fn client_options(arguments: &ConnectArgs) -> client::Options {
    client::Options {
        kubeconfig: kubeconfig(arguments.kubeconfig.as_deref()),
        context: arguments.context.clone(),
        ..client::Options::default()
    }
}

/// As kubectl finds it: the flag, the first file of $KUBECONFIG that exists, the one in the home
/// folder. In a pod there is none of these, and the pod's account is taken.
fn kubeconfig(given: Option<&Path>) -> Option<PathBuf> {
    let of_variable = || {
        let paths = env::var_os("KUBECONFIG").filter(|paths| !paths.is_empty())?;
        let paths: Vec<PathBuf> = env::split_paths(&paths).collect();
        paths.iter().find(|path| path.is_file()).or(paths.first()).cloned()
    };
    let of_home = || {
        let path = PathBuf::from(env::var_os("HOME")?).join(".kube/config");
        path.is_file().then_some(path)
    };
    given.map(Path::to_owned).or_else(of_variable).or_else(of_home)
}

/// Names this process to the others: its host, for people, and some digits that nobody else has.
pub(crate) fn identity() -> String {
    let host = rustix::system::uname().nodename().to_string_lossy().to_lowercase();
    let is_legal = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let host: String = host.chars().filter(|c| is_legal(*c)).take(HOST_CHARACTERS_MAX).collect();
    let digits = Uuid::new_v4().simple().to_string();
    format!("{}-{}", host.trim_matches('-'), &digits[..IDENTITY_DIGITS])
        .trim_start_matches('-')
        .to_owned()
}

pub(crate) fn no_cluster(error: client::Error) -> Failure {
    let hint = match &error {
        client::Error::NoServiceAccount { .. } | client::Error::NoKubeconfig { .. } => {
            "name a kubeconfig with --kubeconfig"
        }
        client::Error::UseKubeconfig { .. } => {
            "`kubectl config get-contexts` lists the contexts for --context"
        }
        _ => "check --kubeconfig; does kubectl work with the file?",
    };
    Failure::new(Exit::Usage, error).with_hint(hint)
}

/// As kubectl tells ages: the one unit that says enough.
pub(crate) fn age(age: SignedDuration) -> String {
    let seconds = age.as_secs().max(0);
    match seconds {
        0..120 => format!("{seconds}s"),
        120..7200 => format!("{}m", seconds / 60),
        7200..172_800 => format!("{}h", seconds / 3600),
        _ => format!("{}d", seconds / 86_400),
    }
}
