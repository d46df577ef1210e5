//! As whom the processes log in: accounts, and files with their tokens that last for the run.

use std::{
    fs,
    io::Write,
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use k8s_openapi::api::{
    authentication::v1::{TokenRequest, TokenRequestSpec},
    core::v1::ServiceAccount,
};
use kube::{
    Api, Client,
    api::PostParams,
    config::{AuthInfo, Kubeconfig},
};
use serde_json::json;

/// Longer than any run.
const TOKEN_SECONDS: i64 = 4 * 60 * 60;

pub(super) fn prepare_folder(scratch: &Path) -> Result<()> {
    fs::create_dir_all(scratch).with_context(|| format!("make {}", scratch.display()))
}

pub(super) fn remove_folder(scratch: &Path) -> Result<()> {
    fs::remove_dir_all(scratch).with_context(|| format!("remove {}", scratch.display()))
}

/// Makes the account, if there is none.
pub(super) async fn ensure(client: &Client, namespace: &str, name: &str) -> Result<()> {
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), namespace);
    let account = serde_json::from_value(json!({"metadata": {"name": name}}))?;
    match accounts.create(&PostParams::default(), &account).await {
        Err(kube::Error::Api(status)) if status.code == 409 => Ok(()),
        other => other.map(drop).context("make an account"),
    }
}

/// The same cluster with another user; where that stands.
pub(super) async fn login(
    (client, kubeconfig): (&Client, &Kubeconfig),
    (namespace, account): (&str, &str),
    scratch: &Path,
) -> Result<PathBuf> {
    let spec =
        TokenRequestSpec { expiration_seconds: Some(TOKEN_SECONDS), ..TokenRequestSpec::default() };
    let request = TokenRequest { spec, ..TokenRequest::default() };
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), namespace);
    let answer = accounts.create_token_request(account, &PostParams::default(), &request).await;
    let answer = answer.with_context(|| format!("ask for a token of {namespace}/{account}"))?;
    let token = answer.status.context("the server gave no token")?.token;
    let mut kubeconfig = kubeconfig.clone();
    for user in &mut kubeconfig.auth_infos {
        let info: AuthInfo = serde_json::from_value(json!({"token": token}))?;
        user.auth_info = Some(info);
    }
    let path = scratch.join(format!("{namespace}-{account}"));
    write(&path, &serde_json::to_vec(&kubeconfig)?)?;
    Ok(path)
}

/// Nobody else may read a token.
fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    let mut options = fs::OpenOptions::new();
    let file = options.create(true).truncate(true).write(true).mode(0o600).open(path);
    let mut file = file.with_context(|| format!("make {}", path.display()))?;
    file.write_all(bytes).with_context(|| format!("write {}", path.display()))
}
