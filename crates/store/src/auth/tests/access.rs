//! Who may read and write what.

use expect_test::{Expect, expect};

use super::script::{check_from, run};
use crate::auth::State;

/// `reader` reads [a, c) and from x on, `writer` writes a and [c, e), `both` has all of it.
const SETUP: &str = r"
    user-add root
    grant-role root root
    role-add read
    grant read read a c
    grant read read x \0
    role-add write
    grant write write a
    grant write write c e
    user-add reader
    user-add writer
    user-add both
    user-add nothing
    grant-role reader read
    grant-role writer write
    grant-role both read
    grant-role both write
    enable
";

#[track_caller]
fn check(script: &str, expected: &Expect) {
    let mut state = State::default();
    run(&mut state, SETUP, &mut |_| {});
    check_from(&mut state, script, expected);
}

#[test]
fn nothing_is_checked_while_auth_is_off() {
    check_from(
        &mut State::default(),
        r"
        range a
        put a lease=7 prev
        delete a \0 prev
        txn compare:a success:put:b
        lease-write a
        lease-read a
        anyone
        admin
        ghost@0> range a
        ",
        &expect![[r#"
            range a → ok
            put a lease=7 prev → ok
            delete a \0 prev → ok
            txn compare:a success:put:b → ok
            lease-write a → ok
            lease-read a → ok
            anyone → ok
            admin → ok
            ghost@0> range a → ok
        "#]],
    );
}

#[test]
fn ranges() {
    check(
        r"
        range a
        reader> range a
        reader> range bzz
        reader> range c
        reader> range a c
        reader> range a d
        reader> range b c
        reader> range 0 c
        reader> range x z
        reader> range y \0
        reader> range w \0
        reader> range \0 \0
        reader> range b a
        reader> range d a
        writer> range a
        nothing> range a
        ghost> range a
        root> range \0 \0
        ",
        &expect![[r#"
            range a → etcdserver: user name is empty
            reader> range a → ok
            reader> range bzz → ok
            reader> range c → etcdserver: permission denied
            reader> range a c → ok
            reader> range a d → etcdserver: permission denied
            reader> range b c → ok
            reader> range 0 c → etcdserver: permission denied
            reader> range x z → ok
            reader> range y \0 → ok
            reader> range w \0 → etcdserver: permission denied
            reader> range \0 \0 → etcdserver: permission denied
            reader> range b a → ok
            reader> range d a → etcdserver: permission denied
            writer> range a → etcdserver: permission denied
            nothing> range a → etcdserver: permission denied
            ghost> range a → etcdserver: permission denied
            root> range \0 \0 → ok
        "#]],
    );
}

/// A watch from a key on asks for `\0` as its end. Taken as one key, or as an empty range, it would
/// be allowed to whoever may read the first key.
#[test]
fn an_open_ended_watch_needs_the_open_end() {
    check(
        r"
        reader> range a
        reader> range a \0
        reader> range x \0
        ",
        &expect![[r#"
            reader> range a → ok
            reader> range a \0 → etcdserver: permission denied
            reader> range x \0 → ok
        "#]],
    );
}

#[test]
fn puts_and_deletes() {
    check(
        r"
        put a
        writer> put a
        writer> put b
        writer> put a prev
        both> put a prev
        both> put c prev
        writer> put a lease=7
        root> put a lease=7
        writer> delete c e
        writer> delete c f
        writer> delete c \0
        writer> delete c e prev
        both> delete a prev
        reader> delete a
        ",
        &expect![[r#"
            put a → etcdserver: user name is empty
            writer> put a → ok
            writer> put b → etcdserver: permission denied
            writer> put a prev → etcdserver: permission denied
            both> put a prev → ok
            both> put c prev → etcdserver: permission denied
            writer> put a lease=7 → etcdserver: permission denied
            root> put a lease=7 → ok
            writer> delete c e → ok
            writer> delete c f → etcdserver: permission denied
            writer> delete c \0 → etcdserver: permission denied
            writer> delete c e prev → etcdserver: permission denied
            both> delete a prev → ok
            reader> delete a → etcdserver: permission denied
        "#]],
    );
}

#[test]
fn transactions_are_checked_in_both_branches_at_every_depth() {
    check(
        r"
        txn
        nothing> txn
        both> txn compare:a success:put:a failure:range:a:c
        both> txn compare:a:d
        writer> txn compare:a
        both> txn success:put:b
        both> txn failure:put:b
        both> txn failure:put:c:prev
        both> txn failure:put:a:lease=7
        both> txn failure:delete:c:e
        both> txn failure:delete:c:e:prev
        both> txn failure:range:a:\0
        both> txn success:txn:failure:txn:success:put:a
        both> txn success:txn:failure:txn:success:put:b
        both> txn success:txn:compare:c
        root> txn success:txn:compare:c failure:put:b
        ",
        &expect![[r#"
            txn → ok
            nothing> txn → ok
            both> txn compare:a success:put:a failure:range:a:c → ok
            both> txn compare:a:d → etcdserver: permission denied
            writer> txn compare:a → etcdserver: permission denied
            both> txn success:put:b → etcdserver: permission denied
            both> txn failure:put:b → etcdserver: permission denied
            both> txn failure:put:c:prev → etcdserver: permission denied
            both> txn failure:put:a:lease=7 → etcdserver: permission denied
            both> txn failure:delete:c:e → ok
            both> txn failure:delete:c:e:prev → etcdserver: permission denied
            both> txn failure:range:a:\0 → etcdserver: permission denied
            both> txn success:txn:failure:txn:success:put:a → ok
            both> txn success:txn:failure:txn:success:put:b → etcdserver: permission denied
            both> txn success:txn:compare:c → etcdserver: permission denied
            root> txn success:txn:compare:c failure:put:b → ok
        "#]],
    );
}

#[test]
fn leases_need_rights_on_all_their_keys() {
    check(
        r"
        lease-write
        lease-write a
        nothing> lease-write
        writer> lease-write a c
        writer> lease-write a x
        root> lease-write a x
        lease-read
        reader> lease-read a x
        reader> lease-read a c
        writer> lease-read a
        anyone
        nothing> anyone
        ghost> anyone
        nothing> admin
        admin
        root> admin
        ",
        &expect![[r#"
            lease-write → etcdserver: user name is empty
            lease-write a → etcdserver: user name is empty
            nothing> lease-write → ok
            writer> lease-write a c → ok
            writer> lease-write a x → etcdserver: permission denied
            root> lease-write a x → ok
            lease-read → etcdserver: user name is empty
            reader> lease-read a x → ok
            reader> lease-read a c → etcdserver: permission denied
            writer> lease-read a → etcdserver: permission denied
            anyone → etcdserver: user name is empty
            nothing> anyone → ok
            ghost> anyone → ok
            nothing> admin → etcdserver: permission denied
            admin → etcdserver: user name is empty
            root> admin → ok
        "#]],
    );
}

#[test]
fn rights_of_an_older_revision_are_not_looked_up() {
    check(
        r"
        status
        reader@16> range a
        reader@17> range a
        reader@18> range a
        reader@16> unchanged
        reader@17> unchanged
        reader@18> unchanged
        unchanged
        root@1> admin
        root@1> range a
        ",
        &expect![[r#"
            status → enabled true, 17
            reader@16> range a → etcdserver: revision of auth store is old
            reader@17> range a → ok
            reader@18> range a → ok
            reader@16> unchanged → etcdserver: revision of auth store is old
            reader@17> unchanged → ok
            reader@18> unchanged → etcdserver: revision of auth store is old
            unchanged → ok
            root@1> admin → ok
            root@1> range a → etcdserver: revision of auth store is old
        "#]],
    );
}

/// A permission of a type that this version does not know grants nothing.
#[test]
fn unknown_permission_types_grant_nothing() {
    check(
        r"
        root> role-add new
        root> grant new 7 k
        root> grant-role nothing new
        nothing> range k
        nothing> put k
        root> role-get new
        ",
        &expect![[r#"
            root> role-add new → ok, revision +1
            root> grant new 7 k → ok, revision +1
            root> grant-role nothing new → ok, revision +1
            nothing> range k → etcdserver: permission denied
            nothing> put k → etcdserver: permission denied
            root> role-get new → [7[k,)]
        "#]],
    );
}
