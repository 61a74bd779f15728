//! An address may name several hosts, of which one takes writes. All are asked at once, and the first that takes writes is used:
//! a host that is switched off, or answers nothing, must not hold up the way to the one that has taken over.

use super::address::Address;
use tokio::task::JoinSet;
use tokio_postgres::{
    Client, Config, Connection, Error, Socket,
    config::{Host, TargetSessionAttrs},
    tls::MakeTlsConnect,
};
use tokio_postgres_rustls::MakeRustlsConnect;

/// What carries a session's messages, until the session ends.
pub type Carrier = Connection<Socket, <MakeRustlsConnect as MakeTlsConnect<Socket>>::Stream>;

impl Address {
    pub async fn connect(&self) -> Result<(Client, Carrier), Error> {
        let mut tries = JoinSet::new();
        for config in hosts(&self.config) {
            let tls = self.tls.clone();
            tries.spawn(async move { config.connect(tls).await });
        }
        let mut refused = None;
        while let Some(tried) = tries.join_next().await {
            match tried {
                Ok(Ok(opened)) => return Ok(opened),
                // What a database says tells more than that a connection was refused.
                Ok(Err(error)) if refused.as_ref().is_none_or(|said: &Error| said.code().is_none()) => {
                    refused = Some(error);
                }
                Ok(Err(_)) | Err(_) => {}
            }
        }
        match refused {
            Some(error) => Err(error),
            None => self.config.connect(self.tls.clone()).await,
        }
    }
}

/// A configuration for each host; just the given one if any host will do, or there is only one.
fn hosts(config: &Config) -> Vec<Config> {
    let any = config.get_target_session_attrs() == TargetSessionAttrs::Any;
    if any || config.get_hosts().len() < 2 || !config.get_hostaddrs().is_empty() {
        return vec![config.clone()];
    }
    let port = |at: usize| config.get_ports().get(at).or(config.get_ports().first()).copied().unwrap_or(5432);
    let with = |(at, host): (usize, &Host)| {
        let mut one = without_hosts(config);
        match host {
            Host::Tcp(name) => one.host(name),
            Host::Unix(path) => one.host_path(path),
        };
        one.port(port(at));
        one
    };
    config.get_hosts().iter().enumerate().map(with).collect()
}

fn without_hosts(config: &Config) -> Config {
    let mut one = Config::new();
    config.get_user().map(|user| one.user(user));
    config.get_password().map(|password| one.password(password));
    config.get_dbname().map(|name| one.dbname(name));
    config.get_options().map(|options| one.options(options));
    config.get_application_name().map(|name| one.application_name(name));
    config.get_connect_timeout().map(|timeout| one.connect_timeout(*timeout));
    config.get_tcp_user_timeout().map(|timeout| one.tcp_user_timeout(*timeout));
    config.get_keepalives_interval().map(|interval| one.keepalives_interval(interval));
    config.get_keepalives_retries().map(|retries| one.keepalives_retries(retries));
    one.keepalives(config.get_keepalives()).keepalives_idle(config.get_keepalives_idle());
    one.ssl_mode(config.get_ssl_mode()).ssl_negotiation(config.get_ssl_negotiation());
    one.target_session_attrs(config.get_target_session_attrs()).channel_binding(config.get_channel_binding());
    one
}
