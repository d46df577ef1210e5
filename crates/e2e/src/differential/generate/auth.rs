//! Users, roles and permissions, and who speaks. `root` is never harmed, or nobody could go on.

use bytes::Bytes;
use etcd_api::authpb;
use etcd_api::etcdserverpb as pb;

use super::super::step::{AuthStep, Step};
use super::Generator;

const USERS: [&str; 4] = ["ann", "bob", "eve", ""];
const ROLES: [&str; 4] = ["reader", "writer", "all", ""];
const ROOT: &str = "root";
const PASSWORD: &str = "secret";

// === impl Generator ===

impl Generator {
    /// The first steps of a guarded run: what refuses to be enabled, then what it needs.
    pub(super) fn plan_guard(&mut self) {
        let user = |name: &str| AuthStep::UserAdd(user_add(name, PASSWORD));
        let role = |name: &str| AuthStep::RoleAdd(pb::AuthRoleAddRequest { name: name.to_owned() });
        let steps = [
            AuthStep::Enable,
            AuthStep::LogIn(authenticate(ROOT, PASSWORD)),
            user(ROOT),
            AuthStep::Enable,
            role(ROOT),
            AuthStep::UserGrantRole(grant(ROOT, ROOT)),
            user("ann"),
            user("bob"),
            role("reader"),
            role("writer"),
            permission("reader", authpb::permission::Type::Read, b"a", b"c"),
            permission("writer", authpb::permission::Type::Readwrite, b"k/", b"k0"),
            AuthStep::UserGrantRole(grant("ann", "reader")),
            AuthStep::UserGrantRole(grant("bob", "writer")),
            AuthStep::Enable,
            AuthStep::Status,
            AuthStep::LogIn(authenticate(ROOT, PASSWORD)),
        ];
        self.planned.extend(steps.map(Step::Auth));
    }

    pub(super) fn auth_step(&mut self) -> Step {
        let step = match self.below(20) {
            0..3 => AuthStep::LogIn(authenticate(ROOT, PASSWORD)),
            3..6 => AuthStep::LogIn(authenticate(self.pick(&USERS), PASSWORD)),
            6 => AuthStep::LogIn(authenticate(self.pick(&USERS), "wrong")),
            7 => self.pick(&[AuthStep::LogOut, AuthStep::Forge]),
            8 => self.pick(&[AuthStep::Status, AuthStep::UserList, AuthStep::RoleList]),
            9 => self.toggle_step(),
            10..15 => self.user_step(),
            _ => self.role_step(),
        };
        Step::Auth(step)
    }

    /// Off as root, something in between, and on again.
    fn toggle_step(&mut self) -> AuthStep {
        if self.one_in(2) {
            return self.pick(&[AuthStep::Enable, AuthStep::Status]);
        }
        let between = self.kv_step();
        self.planned.push_back(Step::Auth(AuthStep::Disable));
        self.planned.push_back(between);
        self.planned.push_back(Step::Auth(AuthStep::Enable));
        AuthStep::LogIn(authenticate(ROOT, PASSWORD))
    }

    fn user_step(&mut self) -> AuthStep {
        let name = self.pick(&USERS).to_owned();
        let role = self.pick(&ROLES).to_owned();
        match self.below(6) {
            0 => {
                let mut request = user_add(&name, PASSWORD);
                let no_password = self.one_in(4);
                request.options = Some(authpb::UserAddOptions { no_password });
                AuthStep::UserAdd(request)
            }
            1 => AuthStep::UserGet(pb::AuthUserGetRequest { name }),
            2 => AuthStep::UserDelete(pb::AuthUserDeleteRequest { name }),
            3 => AuthStep::UserChangePassword(pb::AuthUserChangePasswordRequest {
                name,
                password: PASSWORD.to_owned(),
                hashed_password: String::new(),
            }),
            4 => AuthStep::UserGrantRole(pb::AuthUserGrantRoleRequest { user: name, role }),
            _ => AuthStep::UserRevokeRole(pb::AuthUserRevokeRoleRequest { name, role }),
        }
    }

    fn role_step(&mut self) -> AuthStep {
        let role = self.pick(&ROLES).to_owned();
        let (key, range_end) = self.interval();
        match self.below(6) {
            0 => AuthStep::RoleAdd(pb::AuthRoleAddRequest { name: role }),
            1 => AuthStep::RoleGet(pb::AuthRoleGetRequest { role }),
            2 => AuthStep::RoleDelete(pb::AuthRoleDeleteRequest { role }),
            3 => AuthStep::RoleRevokePermission(pb::AuthRoleRevokePermissionRequest {
                role,
                key,
                range_end,
            }),
            _ => {
                let perm_type = self.below(3) as i32;
                let permission = authpb::Permission { perm_type, key, range_end };
                let perm = (!self.one_in(20)).then_some(permission);
                AuthStep::RoleGrantPermission(pb::AuthRoleGrantPermissionRequest {
                    name: role,
                    perm,
                })
            }
        }
    }
}

fn user_add(name: &str, password: &str) -> pb::AuthUserAddRequest {
    pb::AuthUserAddRequest {
        name: name.to_owned(),
        password: password.to_owned(),
        options: None,
        hashed_password: String::new(),
    }
}

fn authenticate(name: &str, password: &str) -> pb::AuthenticateRequest {
    pb::AuthenticateRequest { name: name.to_owned(), password: password.to_owned() }
}

fn grant(user: &str, role: &str) -> pb::AuthUserGrantRoleRequest {
    pb::AuthUserGrantRoleRequest { user: user.to_owned(), role: role.to_owned() }
}

fn permission(
    role: &str,
    perm_type: authpb::permission::Type,
    key: &'static [u8],
    range_end: &'static [u8],
) -> AuthStep {
    let perm = authpb::Permission {
        perm_type: perm_type as i32,
        key: Bytes::from_static(key),
        range_end: Bytes::from_static(range_end),
    };
    AuthStep::RoleGrantPermission(pb::AuthRoleGrantPermissionRequest {
        name: role.to_owned(),
        perm: Some(perm),
    })
}
