//! `etcdserverpb.Auth`.

use std::sync::Arc;

use etcd_api::etcdserverpb::{
    AuthDisableRequest, AuthDisableResponse, AuthEnableRequest, AuthEnableResponse,
    AuthRoleAddRequest, AuthRoleAddResponse, AuthRoleDeleteRequest, AuthRoleDeleteResponse,
    AuthRoleGetRequest, AuthRoleGetResponse, AuthRoleGrantPermissionRequest,
    AuthRoleGrantPermissionResponse, AuthRoleListRequest, AuthRoleListResponse,
    AuthRoleRevokePermissionRequest, AuthRoleRevokePermissionResponse, AuthStatusRequest,
    AuthStatusResponse, AuthUserAddRequest, AuthUserAddResponse, AuthUserChangePasswordRequest,
    AuthUserChangePasswordResponse, AuthUserDeleteRequest, AuthUserDeleteResponse,
    AuthUserGetRequest, AuthUserGetResponse, AuthUserGrantRoleRequest, AuthUserGrantRoleResponse,
    AuthUserListRequest, AuthUserListResponse, AuthUserRevokeRoleRequest,
    AuthUserRevokeRoleResponse, AuthenticateRequest, AuthenticateResponse, ResponseHeader,
    auth_server::Auth,
};
use tonic::{Request, Response, Status};

use crate::{
    Error,
    auth::{self, Access, Caller, Change, State},
    context::Context,
};

pub(crate) struct AuthService {
    context: Arc<Context>,
}

// === impl AuthService ===

impl AuthService {
    pub(crate) fn new(context: Arc<Context>) -> Self {
        Self { context }
    }

    /// Who calls. Data found damaged does not stand in the way: whoever repairs it must get in.
    fn caller<T>(&self, request: &Request<T>) -> Result<Caller, Error> {
        self.context.caller(request.metadata().as_ref(), request.extensions())
    }

    fn header(&self) -> Option<ResponseHeader> {
        Some(self.context.header(self.context.published.revision()))
    }

    /// Asks the newest durable state anywhere, once the caller may.
    async fn ask<T, R>(
        &self,
        request: &Request<T>,
        permit: impl FnOnce(Access<'_>, &T) -> Result<(), auth::Error>,
        ask: impl FnOnce(&State, &T) -> Result<R, auth::Error>,
    ) -> Result<R, Error> {
        self.context.confirm().await?;
        let caller = self.caller(request)?;
        let state = self.context.gate.state();
        permit(state.access(&caller), request.get_ref()).map_err(Error::Auth)?;
        ask(&state, request.get_ref()).map_err(Error::Auth)
    }

    /// Carries out a change that is all in the request. The writer checks the rights.
    async fn change<T>(&self, request: Request<T>) -> Result<Option<ResponseHeader>, Error>
    where
        Change: From<T>,
    {
        let caller = self.caller(&request)?;
        self.apply(request.into_inner().into(), caller).await
    }

    async fn apply(&self, change: Change, caller: Caller) -> Result<Option<ResponseHeader>, Error> {
        let revision = self.context.sequencer.auth(change, caller).await?;
        Ok(Some(self.context.header(revision)))
    }

    /// The caller, if an administrator: nobody else may make the store hash passwords.
    fn administrator<T>(&self, request: &Request<T>) -> Result<Caller, Error> {
        let caller = self.caller(request)?;
        self.context.gate.state().access(&caller).admin().map_err(Error::Auth)?;
        Ok(caller)
    }

    async fn add_user(
        &self,
        request: Request<AuthUserAddRequest>,
    ) -> Result<Option<ResponseHeader>, Error> {
        let caller = self.administrator(&request)?;
        let passwords = self.context.gate.passwords();
        let change = Change::add_user(request.into_inner(), passwords).await;
        self.apply(change.map_err(Error::Auth)?, caller).await
    }

    async fn change_password(
        &self,
        request: Request<AuthUserChangePasswordRequest>,
    ) -> Result<Option<ResponseHeader>, Error> {
        let caller = self.administrator(&request)?;
        let passwords = self.context.gate.passwords();
        let change = Change::change_password(request.into_inner(), passwords).await;
        self.apply(change.map_err(Error::Auth)?, caller).await
    }

    /// A token shown along with a good password must be good too.
    async fn login(
        &self,
        request: Request<AuthenticateRequest>,
    ) -> Result<AuthenticateResponse, Error> {
        // A password that was changed anywhere before opens nothing here.
        self.context.confirm().await?;
        let caller = self.caller(&request);
        let AuthenticateRequest { name, password } = request.into_inner();
        let token = self.context.gate.login(&name, &password, self.context.now()).await;
        let token = token.map_err(Error::Auth)?;
        caller?;
        Ok(AuthenticateResponse { header: self.header(), token: token.into_text() })
    }

    async fn status(
        &self,
        request: Request<AuthStatusRequest>,
    ) -> Result<AuthStatusResponse, Error> {
        self.context.confirm().await?;
        self.caller(&request)?;
        let state = self.context.gate.state();
        Ok(AuthStatusResponse {
            header: self.header(),
            enabled: state.is_enabled(),
            auth_revision: state.revision(),
        })
    }
}

#[tonic::async_trait]
impl Auth for AuthService {
    async fn auth_enable(
        &self,
        request: Request<AuthEnableRequest>,
    ) -> Result<Response<AuthEnableResponse>, Status> {
        let header = self.change(request).await?;
        Ok(Response::new(AuthEnableResponse { header }))
    }

    async fn auth_disable(
        &self,
        request: Request<AuthDisableRequest>,
    ) -> Result<Response<AuthDisableResponse>, Status> {
        let header = self.change(request).await?;
        Ok(Response::new(AuthDisableResponse { header }))
    }

    async fn auth_status(
        &self,
        request: Request<AuthStatusRequest>,
    ) -> Result<Response<AuthStatusResponse>, Status> {
        Ok(Response::new(self.status(request).await?))
    }

    async fn authenticate(
        &self,
        request: Request<AuthenticateRequest>,
    ) -> Result<Response<AuthenticateResponse>, Status> {
        Ok(Response::new(self.login(request).await?))
    }

    async fn user_add(
        &self,
        request: Request<AuthUserAddRequest>,
    ) -> Result<Response<AuthUserAddResponse>, Status> {
        let header = self.add_user(request).await?;
        Ok(Response::new(AuthUserAddResponse { header }))
    }

    async fn user_get(
        &self,
        request: Request<AuthUserGetRequest>,
    ) -> Result<Response<AuthUserGetResponse>, Status> {
        let roles = self.ask(
            &request,
            |access, request| access.user_get(&request.name),
            |state, request| state.user_roles(&request.name),
        );
        let roles = roles.await?;
        Ok(Response::new(AuthUserGetResponse { header: self.header(), roles }))
    }

    async fn user_list(
        &self,
        request: Request<AuthUserListRequest>,
    ) -> Result<Response<AuthUserListResponse>, Status> {
        let users =
            self.ask(&request, |access, _| access.admin(), |state, _| Ok(state.user_names()));
        let users = users.await?;
        Ok(Response::new(AuthUserListResponse { header: self.header(), users }))
    }

    async fn user_delete(
        &self,
        request: Request<AuthUserDeleteRequest>,
    ) -> Result<Response<AuthUserDeleteResponse>, Status> {
        let header = self.change(request).await?;
        Ok(Response::new(AuthUserDeleteResponse { header }))
    }

    async fn user_change_password(
        &self,
        request: Request<AuthUserChangePasswordRequest>,
    ) -> Result<Response<AuthUserChangePasswordResponse>, Status> {
        let header = self.change_password(request).await?;
        Ok(Response::new(AuthUserChangePasswordResponse { header }))
    }

    async fn user_grant_role(
        &self,
        request: Request<AuthUserGrantRoleRequest>,
    ) -> Result<Response<AuthUserGrantRoleResponse>, Status> {
        let header = self.change(request).await?;
        Ok(Response::new(AuthUserGrantRoleResponse { header }))
    }

    async fn user_revoke_role(
        &self,
        request: Request<AuthUserRevokeRoleRequest>,
    ) -> Result<Response<AuthUserRevokeRoleResponse>, Status> {
        let header = self.change(request).await?;
        Ok(Response::new(AuthUserRevokeRoleResponse { header }))
    }

    async fn role_add(
        &self,
        request: Request<AuthRoleAddRequest>,
    ) -> Result<Response<AuthRoleAddResponse>, Status> {
        let header = self.change(request).await?;
        Ok(Response::new(AuthRoleAddResponse { header }))
    }

    async fn role_get(
        &self,
        request: Request<AuthRoleGetRequest>,
    ) -> Result<Response<AuthRoleGetResponse>, Status> {
        let perm = self.ask(
            &request,
            |access, request| access.role_get(&request.role),
            |state, request| state.role_permissions(&request.role),
        );
        let perm = perm.await?;
        Ok(Response::new(AuthRoleGetResponse { header: self.header(), perm }))
    }

    async fn role_list(
        &self,
        request: Request<AuthRoleListRequest>,
    ) -> Result<Response<AuthRoleListResponse>, Status> {
        let roles =
            self.ask(&request, |access, _| access.admin(), |state, _| Ok(state.role_names()));
        let roles = roles.await?;
        Ok(Response::new(AuthRoleListResponse { header: self.header(), roles }))
    }

    async fn role_delete(
        &self,
        request: Request<AuthRoleDeleteRequest>,
    ) -> Result<Response<AuthRoleDeleteResponse>, Status> {
        let header = self.change(request).await?;
        Ok(Response::new(AuthRoleDeleteResponse { header }))
    }

    async fn role_grant_permission(
        &self,
        request: Request<AuthRoleGrantPermissionRequest>,
    ) -> Result<Response<AuthRoleGrantPermissionResponse>, Status> {
        let header = self.change(request).await?;
        Ok(Response::new(AuthRoleGrantPermissionResponse { header }))
    }

    async fn role_revoke_permission(
        &self,
        request: Request<AuthRoleRevokePermissionRequest>,
    ) -> Result<Response<AuthRoleRevokePermissionResponse>, Status> {
        let header = self.change(request).await?;
        Ok(Response::new(AuthRoleRevokePermissionResponse { header }))
    }
}
