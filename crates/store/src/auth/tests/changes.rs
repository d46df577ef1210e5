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
        &expect![[""]],
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
        &expect![[""]],
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
        &expect![[""]],
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
        &expect![[""]],
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
        &expect![[""]],
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
        &expect![[""]],
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
        &expect![[""]],
    );
}
