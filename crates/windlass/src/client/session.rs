//! A connection, and who speaks on it. Owns logging in; a password goes to the store and nowhere
//! else.

use etcd_api::{
    ApiError,
    etcdserverpb::{AuthenticateRequest, auth_client::AuthClient},
};
use tonic::{Request, metadata::AsciiMetadataValue, transport::Channel};

use super::{Error, refused_perhaps};
use crate::{
    cli::{LoginArgs, Secret},
    report::Failure,
};

/// Who a connection belongs to.
pub(crate) struct Session {
    channel: Channel,
    login: Option<Login>,
    /// Absent if nobody logs in, or nobody has to.
    token: Option<AsciiMetadataValue>,
}

/// A name and its password.
pub(crate) struct Login {
    pub(crate) name: String,
    pub(crate) password: Secret,
}

// === impl Session ===

impl Session {
    /// Logs in if a user is named. A store without authentication needs no login, as for etcdctl.
    pub(crate) async fn begin(channel: Channel, arguments: &LoginArgs) -> Result<Self, Failure> {
        let login = Login::of(arguments)?;
        let token = match &login {
            Some(login) => login.token(channel.clone()).await?,
            None => None,
        };
        Ok(Self { channel, login, token })
    }

    pub(crate) fn channel(&self) -> Channel {
        self.channel.clone()
    }

    pub(crate) fn login(&self) -> Option<&Login> {
        self.login.as_ref()
    }

    /// A message, said by whoever logged in.
    pub(crate) fn request<T>(&self, message: T) -> Request<T> {
        let mut request = Request::new(message);
        if let Some(token) = &self.token {
            request.metadata_mut().insert("token", token.clone());
        }
        request
    }

    /// What was refused to whoever logged in.
    pub(crate) fn refused(
        &self,
        refusal: impl std::error::Error + Send + Sync + 'static,
    ) -> Failure {
        let hint = match &self.login {
            None => "if authentication is enabled there, give --user",
            Some(_) => "give a --user with the role root; the log of the store says more",
        };
        refused_perhaps(refusal, hint)
    }
}

// === impl Login ===

impl Login {
    /// As etcdctl reads it: a password given alone makes all of `--user` the name.
    fn of(arguments: &LoginArgs) -> Result<Option<Self>, Error> {
        let Some(user) = arguments.user.as_ref().map(Secret::reveal) else { return Ok(None) };
        let (name, password) = match &arguments.password {
            Some(password) => (user, password.reveal()),
            None => user.split_once(':').ok_or(Error::NoPassword)?,
        };
        Ok(Some(Self { name: name.to_owned(), password: Secret::new(password) }))
    }

    async fn token(&self, channel: Channel) -> Result<Option<AsciiMetadataValue>, Failure> {
        let (name, password) = (self.name.clone(), self.password.reveal().to_owned());
        let request = AuthenticateRequest { name, password };
        match AuthClient::new(channel).authenticate(request).await {
            Ok(answer) => {
                let token = answer.into_inner().token.parse();
                let unprintable = |_token| Error::Token { user: self.name.clone() };
                Ok(Some(token.map_err(unprintable)?))
            }
            Err(refusal) if refusal.message() == ApiError::AuthNotEnabled.message() => Ok(None),
            Err(refusal) => Err(refused_perhaps(refusal, "check the name and the password")),
        }
    }
}

#[cfg(test)]
mod tests {
    use etcd_api::etcdserverpb::{StatusRequest, maintenance_client::MaintenanceClient};
    use tokio::net::TcpListener;

    use super::*;
    use crate::{cli::TlsArgs, client, report::Exit};

    /// As one that was sent SIGSTOP: the system takes the connection, and nobody speaks on it.
    #[tokio::test(start_paused = true)]
    async fn a_store_that_stands_still_was_waited_for_for_ever() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = listener.local_addr().unwrap().to_string();
        let channel = client::connect(&endpoint, &TlsArgs::default()).await.unwrap();
        let nobody = LoginArgs { user: None, password: None };
        let session = Session::begin(channel.clone(), &nobody).await.unwrap();
        let answer =
            MaintenanceClient::new(channel).status(session.request(StatusRequest {})).await;
        let failure = session.refused(answer.unwrap_err());
        assert_eq!(failure.exit(), Exit::Unreachable, "{failure:?}");
    }

    fn check(user: Option<&str>, password: Option<&str>, expected: &str) {
        let arguments =
            LoginArgs { user: user.map(Secret::new), password: password.map(Secret::new) };
        let actual = match Login::of(&arguments) {
            Ok(None) => "nobody".to_owned(),
            Ok(Some(login)) => format!("{} with {}", login.name, login.password.reveal()),
            Err(error) => error.to_string(),
        };
        assert_eq!(actual, expected);
    }

    #[test]
    fn a_password_stands_behind_the_name_or_alone() {
        check(None, None, "nobody");
        check(Some("root:secret"), None, "root with secret");
        check(Some("root:se:cret"), None, "root with se:cret");
        check(Some("root"), Some("se:cret"), "root with se:cret");
        check(Some("ro:ot"), Some("secret"), "ro:ot with secret");
        check(Some("root"), None, "the password of --user is missing");
    }

    #[test]
    fn what_was_typed_can_be_shown_without_the_password() {
        let arguments = LoginArgs { user: Some(Secret::new("root:secret")), password: None };
        assert!(!format!("{arguments:?}").contains("secret"));
    }
}
