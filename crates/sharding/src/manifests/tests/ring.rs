//! What a ring adds to a cluster.

use expect_test::expect;
use serde_json::{Value, json};

use super::{check, inventory, rights, text};
use crate::core::spec::Spec;
use crate::manifests::ring_objects;

fn objects(fence: &str, instances: &Value) -> Vec<Value> {
    let spec: Spec = serde_json::from_value(json!({
        "resources": [
            {"group": "example.com", "resource": "sites", "controlled": [
                {"resource": "configmaps"}, {"resource": "secrets"},
            ]},
            {"group": "example.com", "resource": "pages", "controlled": [{"resource": "secrets"}]},
        ],
        "instances": instances,
        "fence": fence,
    }))
    .unwrap();
    ring_objects(&"websites".parse().unwrap(), &spec, "home")
}

#[test]
fn each_account_may_do_what_an_instance_must_where_it_lives() {
    let accounts = json!({"serviceAccounts": ["shop/sites", "shop/pages", "yard/sites"]});
    let objects = objects("Managed", &accounts);
    check(
        &inventory(&objects),
        &expect![[r#"
        ClusterRole windlass-sharder-ring-websites
        ClusterRole windlass-ring-websites-instance
        ClusterRoleBinding windlass-ring-websites-instance
        RoleBinding shop/windlass-ring-websites-instance
        RoleBinding yard/windlass-ring-websites-instance
    "#]],
    );
    check(
        &rights(&objects),
        &expect![[r#"
        windlass-sharder-ring-websites: /configmaps secrets: get list watch patch
        windlass-sharder-ring-websites: example.com/pages sites: get list watch patch
        windlass-ring-websites-instance: windlass.dev/rings: get
        windlass-ring-websites-instance: /configmaps secrets: get list watch patch
        windlass-ring-websites-instance: example.com/pages sites: get list watch patch
    "#]],
    );
    let in_shop = objects.iter().find(|object| object["metadata"]["namespace"] == "shop").unwrap();
    assert_eq!(in_shop["roleRef"]["name"], "windlass-sharder-instance");
    let names: Vec<&str> =
        in_shop["subjects"].as_array().unwrap().iter().map(|it| text(&it["name"])).collect();
    assert_eq!(names, ["sites", "pages"]);
}

#[test]
fn the_role_of_a_ring_is_added_to_the_sharders() {
    let role = &objects("Off", &json!({}))[0];
    assert_eq!(role["metadata"]["labels"]["sharding.windlass.dev/aggregate-to-sharder"], "true");
}

#[test]
fn the_fence_is_printed_where_the_administrator_keeps_it() {
    let by_prefix = json!({"usernamePrefix": "site:", "identity": "Username"});
    check(
        &inventory(&objects("External", &by_prefix)),
        &expect![[r#"
        ClusterRole windlass-sharder-ring-websites
        ClusterRole windlass-ring-websites-instance
        ValidatingAdmissionPolicy windlass-fence-websites
        ValidatingAdmissionPolicyBinding windlass-fence-websites
    "#]],
    );
    let policy = &objects("External", &by_prefix)[2];
    let variables = policy["spec"]["variables"].as_array().unwrap();
    let sharder = variables.iter().find(|variable| variable["name"] == "isSharder").unwrap();
    check(
        text(&sharder["expression"]),
        &expect![[r#"variables.user in ["system:serviceaccount:home:windlass-sharder"]"#]],
    );
    assert_eq!(inventory(&objects("Off", &by_prefix)), inventory(&objects("Managed", &by_prefix)));
}
