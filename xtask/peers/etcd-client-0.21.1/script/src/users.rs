//! Users, roles and what they may do. Comes last: it leaves a store that asks for names.

use anyhow::Result;
use etcd_client::{
    Client, ConnectOptions, Permission, PermissionType, RoleRevokePermissionOptions,
};

use crate::transcript::{Transcript, pairs};

pub(crate) async fn run(
    client: &mut Client,
    endpoint: &str,
    transcript: &mut Transcript,
) -> Result<()> {
    set_up(client, transcript).await?;
    client.auth_enable().await?;
    transcript.refused("without a name", client.get("a", None).await)?;
    let wrong = Client::connect([endpoint], Some(ConnectOptions::new().with_user("root", "x")));
    transcript.refused("wrong password", wrong.await)?;
    let mut ann = named(endpoint, "ann", "pass").await?;
    let mut root = named(endpoint, "root", "secret").await?;
    ann.put("app/1", "by ann", None).await?;
    transcript.say("allowed", pairs(ann.get("app/1", None).await?.kvs()));
    transcript.refused("not hers", ann.put("b", "by ann", None).await)?;
    transcript.refused("not hers to read", ann.get("b", None).await)?;
    transcript.refused("not hers to add", ann.user_add("eve", "x", None).await)?;
    let prefix = RoleRevokePermissionOptions::new().with_prefix();
    root.role_revoke_permission("app", "app/", Some(prefix)).await?;
    transcript.refused("no longer hers", ann.get("app/1", None).await)?;
    root.user_change_password("ann", "other").await?;
    root.user_revoke_role("ann", "app").await?;
    root.role_delete("app").await?;
    root.user_delete("ann").await?;
    transcript.refused("of nobody", root.user_get("ann").await)?;
    root.auth_disable().await?;
    transcript.say("without a name again", pairs(client.get("app/1", None).await?.kvs()));
    Ok(())
}

async fn set_up(client: &mut Client, transcript: &mut Transcript) -> Result<()> {
    transcript.refused("too early", client.auth_enable().await)?;
    client.user_add("root", "secret", None).await?;
    client.role_add("root").await?;
    client.user_grant_role("root", "root").await?;
    client.user_add("ann", "pass", None).await?;
    transcript.refused("add again", client.user_add("ann", "pass", None).await)?;
    client.role_add("app").await?;
    let permission = Permission::new(PermissionType::Readwrite, "app/").with_prefix();
    client.role_grant_permission("app", permission).await?;
    client.user_grant_role("ann", "app").await?;
    let users = client.user_list().await?;
    let roles = client.role_list().await?;
    transcript.say("users and roles", format!("{:?} {:?}", users.users(), roles.roles()));
    let granted = client.role_get("app").await?.permissions().len();
    let held = client.user_get("ann").await?;
    transcript.say("ann", format!("{:?}, with {granted}", held.roles()));
    Ok(())
}

async fn named(endpoint: &str, name: &str, password: &str) -> Result<Client> {
    let options = ConnectOptions::new().with_user(name, password);
    Ok(Client::connect([endpoint], Some(options)).await?)
}
