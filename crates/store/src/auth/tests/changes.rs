//! Changing users and roles: every rule, every error, and when the revision moves.

use expect_test::expect;

use super::script::check;

#[test]
fn enabling_needs_a_root_user_with_the_root_role() {
    check(
        "
        status
        enable
        user-add root
        enable
        grant-role root root
        enable
        status
        root> enable
        status
        root> disable
        disable
        status
        ",
        &expect![[r#"
            status → enabled false, 1
            enable → etcdserver: root user does not exist
            user-add root → ok, revision +1
            enable → etcdserver: root user does not have root role
            grant-role root root → ok, revision +1
            enable → ok
            status → enabled true, 3
            root> enable → ok, nothing to keep
            status → enabled true, 3
            root> disable → ok, revision +1
            disable → ok, nothing to keep
            status → enabled false, 4
        "#]],
    );
}

#[test]
fn users_have_unique_names_and_known_roles() {
    check(
        r#"
        user-add ""
        user-add bob
        user-add bob
        user-add alice no-password
        passwd alice
        passwd carol
        grant-role carol app
        grant-role bob app
        role-add zoo
        role-add app
        grant-role bob zoo
        grant-role bob app
        grant-role bob app
        user-get bob
        revoke-role bob zoo
        revoke-role bob zoo
        revoke-role carol zoo
        user-list
        user-get carol
        user-delete carol
        user-delete bob
        user-list
        "#,
        &expect![[r#"
            user-add "" → etcdserver: user name is empty
            user-add bob → ok, revision +1
            user-add bob → etcdserver: user name already exists
            user-add alice no-password → ok, revision +1
            passwd alice → ok, revision +1
            passwd carol → etcdserver: user name not found
            grant-role carol app → etcdserver: user name not found
            grant-role bob app → etcdserver: role name not found
            role-add zoo → ok, revision +1
            role-add app → ok, revision +1
            grant-role bob zoo → ok, revision +1
            grant-role bob app → ok, revision +1
            grant-role bob app → ok, nothing to keep
            user-get bob → ["app", "zoo"]
            revoke-role bob zoo → ok, revision +1
            revoke-role bob zoo → etcdserver: role is not granted to the user
            revoke-role carol zoo → etcdserver: user name not found
            user-list → ["alice", "bob"]
            user-get carol → etcdserver: user name not found
            user-delete carol → etcdserver: user name not found
            user-delete bob → ok, revision +1
            user-list → ["alice"]
        "#]],
    );
}

#[test]
fn deleting_a_role_takes_it_from_everybody() {
    check(
        r#"
        role-add ""
        role-add app
        role-add app
        role-delete other
        user-add alice
        user-add bob
        grant-role alice app
        grant-role bob app
        grant-role bob root
        role-delete app
        user-get alice
        user-get bob
        role-list
        "#,
        &expect![[r#"
            role-add "" → etcdserver: role name is empty
            role-add app → ok, revision +1
            role-add app → etcdserver: role name already exists
            role-delete other → etcdserver: role name not found
            user-add alice → ok, revision +1
            user-add bob → ok, revision +1
            grant-role alice app → ok, revision +1
            grant-role bob app → ok, revision +1
            grant-role bob root → ok, revision +1
            role-delete app → ok, revision +1
            user-get alice → []
            user-get bob → ["root"]
            role-list → []
        "#]],
    );
}

#[test]
fn permissions_are_ordered_and_replaced() {
    check(
        r#"
        grant app
        grant app read a
        role-add app
        grant app
        grant app read ""
        grant app read b a
        grant app read b b
        grant app read b
        grant app read a \0
        grant app write a \0
        role-get app
        revoke app a
        revoke app a \0
        revoke other a
        role-get app
        role-get other
        "#,
        &expect![[r#"
            grant app → etcdserver: permission not given
            grant app read a → etcdserver: role name not found
            role-add app → ok, revision +1
            grant app → etcdserver: permission not given
            grant app read "" → etcdserver: invalid auth management
            grant app read b a → etcdserver: invalid auth management
            grant app read b b → etcdserver: invalid auth management
            grant app read b → ok, revision +1
            grant app read a \0 → ok, revision +1
            grant app write a \0 → ok, revision +1
            role-get app → [write[a,\x00), read[b,)]
            revoke app a → etcdserver: permission is not granted to the role
            revoke app a \0 → ok, revision +1
            revoke other a → etcdserver: role name not found
            role-get app → [read[b,)]
            role-get other → etcdserver: role name not found
        "#]],
    );
}

/// etcd looks at the first permission of a key only when it looks for one to replace.
#[test]
fn a_second_range_of_a_key_is_never_replaced() {
    check(
        "
        role-add r
        grant r read a b
        grant r read a c
        grant r rw a c
        grant r write a b
        role-get r
        revoke r a c
        role-get r
        ",
        &expect![[r#"
            role-add r → ok, revision +1
            grant r read a b → ok, revision +1
            grant r read a c → ok, revision +1
            grant r rw a c → ok, revision +1
            grant r write a b → ok, revision +1
            role-get r → [write[a,b), read[a,c), rw[a,c)]
            revoke r a c → ok, revision +1
            role-get r → [write[a,b)]
        "#]],
    );
}

#[test]
fn the_administrator_cannot_be_locked_out() {
    check(
        "
        user-add root
        role-add root
        grant root read a
        grant-role root root
        enable
        role-get root
        root> role-get root
        root> user-delete root
        root> role-delete root
        root> revoke-role root root
        root> disable
        revoke-role root root
        role-delete root
        user-delete root
        status
        ",
        &expect![[r#"
            user-add root → ok, revision +1
            role-add root → ok, revision +1
            grant root read a → ok, revision +1
            grant-role root root → ok, revision +1
            enable → ok
            role-get root → etcdserver: user name is empty
            root> role-get root → [rw[,\x00)]
            root> user-delete root → etcdserver: invalid auth management
            root> role-delete root → etcdserver: invalid auth management
            root> revoke-role root root → etcdserver: invalid auth management
            root> disable → ok, revision +1
            revoke-role root root → ok, revision +1
            role-delete root → ok, revision +1
            user-delete root → ok, revision +1
            status → enabled false, 9
        "#]],
    );
}

#[test]
fn only_administrators_manage_once_enabled() {
    check(
        r#"
        user-add root
        grant-role root root
        user-add alice
        role-add app
        role-add other
        grant-role alice app
        enable
        user-add bob
        alice> user-add bob
        ghost> user-add bob
        ""> user-add bob
        alice> user-list
        alice> role-list
        alice> user-get alice
        alice> user-get root
        user-get alice
        alice> role-get app
        alice> role-get other
        ghost> user-get ghost
        root@1> user-add bob
        root> user-list
        "#,
        &expect![[r#"
            user-add root → ok, revision +1
            grant-role root root → ok, revision +1
            user-add alice → ok, revision +1
            role-add app → ok, revision +1
            role-add other → ok, revision +1
            grant-role alice app → ok, revision +1
            enable → ok
            user-add bob → etcdserver: user name is empty
            alice> user-add bob → etcdserver: permission denied
            ghost> user-add bob → etcdserver: user name not found
            ""> user-add bob → etcdserver: user name is empty
            alice> user-list → etcdserver: permission denied
            alice> role-list → etcdserver: permission denied
            alice> user-get alice → ["app"]
            alice> user-get root → etcdserver: permission denied
            user-get alice → etcdserver: user name is empty
            alice> role-get app → []
            alice> role-get other → etcdserver: permission denied
            ghost> user-get ghost → etcdserver: user name not found
            root@1> user-add bob → ok, revision +1
            root> user-list → ["alice", "bob", "root"]
        "#]],
    );
}
