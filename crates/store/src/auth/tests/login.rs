//! Logging in with a password, and being known by a token or a certificate afterwards.

use std::{sync::Arc, time::Duration};

use expect_test::expect;
use http::{Extensions, HeaderMap, HeaderValue};

use super::now;
use crate::{
    AuthToken,
    auth::{Caller, Change, Error, Gate, Now, PeerIdentity, State, Token},
};

const TTL: Duration = Duration::from_secs(300);
/// bcrypt's smallest.
const COST: u32 = 4;

/// A gate whose state the test changes as the sequencer would.
struct Store {
    gate: Gate,
    state: State,
}

// === impl Store ===

impl Store {
    /// Auth is enabled, root has the password `root` and alice `secret`; carol has none.
    async fn new() -> Self {
        let token = AuthToken::Simple { ttl: TTL };
        let gate = Gate::new(&token, COST, Arc::default()).unwrap();
        let mut store = Self { gate, state: State::default() };
        for (name, password) in [("root", "root"), ("alice", "secret")] {
            let password = Some(store.gate.passwords().hash(password.to_owned()).await.unwrap());
            store.change(Change::AddUser { name: name.to_owned(), password });
        }
        store.change(Change::AddUser { name: "carol".to_owned(), password: None });
        store.change(Change::GrantRole { user: "root".to_owned(), role: "root".to_owned() });
        store.change(Change::Enable);
        store
    }

    fn change(&mut self, change: Change) {
        let root = Caller::User { name: "root".into(), revision: self.state.revision() };
        self.state.apply(&root, change).unwrap();
        self.gate.publish(Arc::new(self.state.clone()));
    }

    async fn login(&self, name: &str, password: &str, now: Now) -> Result<Token, Error> {
        self.gate.login(name, password, now).await
    }

    /// Who is known by `token`.
    fn name(&self, token: &Token, now: Now) -> Result<String, Error> {
        let text = token.clone().into_text();
        let caller = self.gate.caller(&headers(&[("token", &text)]), &Extensions::new(), now)?;
        match caller {
            Caller::User { name, revision } => {
                assert_eq!(revision, self.state.revision());
                Ok(name.to_string())
            }
            Caller::Anonymous => panic!("a token names somebody"),
        }
    }
}

fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
    pairs
        .iter()
        .map(|(name, value)| {
            (http::HeaderName::from_static(name), HeaderValue::from_str(value).unwrap())
        })
        .collect()
}

#[tokio::test]
async fn passwords() {
    let mut store = Store::new().await;
    let mut told = String::new();
    for (name, password) in [
        ("alice", "secret"),
        ("alice", "Secret"),
        ("alice", ""),
        ("nobody", "secret"),
        ("", ""),
        ("carol", ""),
    ] {
        let answer = store.login(name, password, now()).await;
        let answer = answer.map_or_else(|error| error.api_error().message(), |_| "ok");
        told += &format!("{name}:{password} → {answer}\n");
    }
    store.change(Change::Disable);
    let answer = store.login("alice", "secret", now()).await.unwrap_err();
    told += &format!("disabled → {}\n", answer.api_error().message());
    expect![[r#"
        alice:secret → ok
        alice:Secret → etcdserver: authentication failed, invalid user ID or password
        alice: → etcdserver: authentication failed, invalid user ID or password
        nobody:secret → etcdserver: authentication failed, invalid user ID or password
        : → etcdserver: authentication failed, invalid user ID or password
        carol: → auth: authentication failed, password was given for no password user
        disabled → etcdserver: authentication is not enabled
    "#]]
    .assert_eq(&told);
}

/// bcrypt sees 72 bytes of a password: etcd refuses to set a longer one, and cuts it when logging in.
#[tokio::test]
async fn long_passwords() {
    let mut store = Store::new().await;
    let longest = "x".repeat(72);
    let too_long = store.gate.passwords().hash("x".repeat(73)).await;
    assert_eq!(
        too_long.unwrap_err().api_error().message(),
        "bcrypt: password length exceeds 72 bytes"
    );
    let password = store.gate.passwords().hash(longest.clone()).await.unwrap();
    store.change(Change::SetPassword { name: "alice".to_owned(), password });
    assert!(store.login("alice", &longest, now()).await.is_ok());
    assert!(store.login("alice", &format!("{longest}y"), now()).await.is_ok());
    assert_eq!(store.login("alice", &longest[1..], now()).await, Err(Error::WrongPassword));
}

#[tokio::test]
async fn tokens_look_like_etcds() {
    let store = Store::new().await;
    for number in ["1", "2"] {
        let text = store.login("alice", "secret", now()).await.unwrap().into_text();
        let (letters, index) = text.split_once('.').unwrap();
        assert!(letters.len() == 16 && letters.bytes().all(|byte| byte.is_ascii_alphabetic()));
        assert_eq!(index, number);
    }
}

#[tokio::test]
async fn tokens_end_when_unused_for_their_time() {
    let store = Store::new().await;
    let start = now();
    let used = store.login("alice", "secret", start).await.unwrap();
    let unused = store.login("alice", "secret", start).await.unwrap();
    let mut told = String::new();
    for seconds in [299, 300, 301, 598, 602, 903] {
        let name = store.name(&used, start.after(seconds));
        told += &format!("{seconds} s: {name:?}\n");
    }
    told += &format!("unused for 301 s: {:?}\n", store.name(&unused, start.after(301)));
    expect![[r#"
        299 s: Ok("alice")
        300 s: Ok("alice")
        301 s: Ok("alice")
        598 s: Ok("alice")
        602 s: Ok("alice")
        903 s: Err(InvalidToken)
        unused for 301 s: Err(InvalidToken)
    "#]]
    .assert_eq(&told);
}

#[tokio::test]
async fn tokens_end_with_the_password_the_user_or_auth() {
    let mut store = Store::new().await;
    let alice = store.login("alice", "secret", now()).await.unwrap();
    let root = store.login("root", "root", now()).await.unwrap();

    store.change(Change::AddRole { name: "app".to_owned() });
    store.change(Change::GrantRole { user: "alice".to_owned(), role: "app".to_owned() });
    assert_eq!(store.name(&alice, now()).as_deref(), Ok("alice"), "roles end no token");

    let password = store.gate.passwords().hash("new".to_owned()).await.unwrap();
    store.change(Change::SetPassword { name: "alice".to_owned(), password });
    assert_eq!(store.name(&alice, now()), Err(Error::InvalidToken));

    let alice = store.login("alice", "new", now()).await.unwrap();
    let Some(hash) = store.state.users["alice"].password.clone() else { unreachable!() };
    store.change(Change::DeleteUser { name: "alice".to_owned() });
    assert_eq!(store.name(&alice, now()), Err(Error::InvalidToken));
    store.change(Change::AddUser { name: "alice".to_owned(), password: Some(hash) });
    assert_eq!(store.name(&alice, now()), Err(Error::InvalidToken), "another alice");

    assert_eq!(store.name(&root, now()).as_deref(), Ok("root"));
    store.change(Change::Disable);
    store.change(Change::Enable);
    assert_eq!(store.name(&root, now()), Err(Error::InvalidToken));
}

/// The token may come in either header, with or without a prefix; a bad one is refused even where a
/// certificate would do.
#[tokio::test]
async fn callers() {
    let store = Store::new().await;
    let token = store.login("alice", "secret", now()).await.unwrap().into_text();
    let bearer = format!("Bearer {token}");
    let basic = format!("Basic {token}");
    let mut certified = Extensions::new();
    certified.insert(PeerIdentity { common_name: "carol".into() });
    let plain = Extensions::new();
    let gateway = ("grpcgateway-accept", "application/json");
    let mut told = String::new();
    for (what, pairs, extensions) in [
        ("nothing", &[][..], &plain),
        ("token", &[("token", &*token)], &plain),
        ("token, bearer", &[("token", &bearer)], &plain),
        ("authorization", &[("authorization", &token)], &plain),
        ("authorization, bearer", &[("authorization", &bearer)], &plain),
        ("authorization, basic", &[("authorization", &basic)], &plain),
        ("unknown token", &[("token", "abcdefghijklmnop.1")], &plain),
        ("empty token", &[("token", "")], &plain),
        ("good token, bad authorization", &[("token", &token), ("authorization", "no")], &plain),
        ("certificate", &[], &certified),
        ("certificate and token", &[("token", &token)], &certified),
        ("certificate and bad token", &[("token", "no")], &certified),
        ("certificate of a gateway", &[gateway], &certified),
    ] {
        let caller = store.gate.caller(&headers(pairs), extensions, now());
        told += &match caller {
            Ok(Caller::User { name, .. }) => format!("{what} → {name}\n"),
            Ok(Caller::Anonymous) => format!("{what} → nobody\n"),
            Err(error) => format!("{what} → {}\n", error.api_error().message()),
        };
    }
    expect![[r#"
        nothing → nobody
        token → alice
        token, bearer → alice
        authorization → alice
        authorization, bearer → alice
        authorization, basic → etcdserver: invalid auth token
        unknown token → etcdserver: invalid auth token
        empty token → etcdserver: invalid auth token
        good token, bad authorization → alice
        certificate → carol
        certificate and token → alice
        certificate and bad token → etcdserver: invalid auth token
        certificate of a gateway → nobody
    "#]]
    .assert_eq(&told);
}

#[tokio::test]
async fn nobody_is_looked_at_while_auth_is_off() {
    let mut store = Store::new().await;
    store.change(Change::Disable);
    let caller = store.gate.caller(&headers(&[("token", "no")]), &Extensions::new(), now());
    assert_eq!(caller, Ok(Caller::Anonymous));
}

#[tokio::test]
async fn debug_tells_no_token() {
    let store = Store::new().await;
    let token = store.login("alice", "secret", now()).await.unwrap();
    let told = format!("{token:?} {:?}", store.gate);
    assert!(!told.contains(&token.into_text()));
}

/// A token of one member is good at another that has the same secret, ends with the password there too,
/// and is nothing to one with another secret.
#[tokio::test]
async fn a_shared_token_is_good_at_every_member() {
    let (mut first, mut second) = (Store::new().await, Store::new().await);
    let third = Store::new().await;
    first.gate = first.gate.sharing(Some(&[1; 32]));
    second.gate = second.gate.sharing(Some(&[1; 32]));
    let stranger = third.gate.sharing(Some(&[2; 32]));
    let now = now();
    let token = first.login("alice", "secret", now).await.unwrap();
    assert_eq!(first.name(&token, now), Ok("alice".to_owned()));
    assert_eq!(second.name(&token, now), Ok("alice".to_owned()));
    let text = token.clone().into_text();
    let shown = headers(&[("token", &text)]);
    assert_eq!(stranger.caller(&shown, &Extensions::new(), now), Err(Error::InvalidToken));
    let password = second.gate.passwords().hash("another".to_owned()).await.unwrap();
    second.change(Change::SetPassword { name: "alice".to_owned(), password });
    assert_eq!(second.name(&token, now), Err(Error::InvalidToken));
    let late = now.after(TTL.as_secs() + 1);
    assert_eq!(first.name(&token, late), Err(Error::InvalidToken));
}
