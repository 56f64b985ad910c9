//! From a broker's address to a stream of bytes: the one place that knows how a connection is secured.

use std::fmt;
use std::io;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

use super::ConnectionError;
use crate::kafka::settings::Security;

/// Where a broker listens.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address {
    pub host: String,
    pub port: u16,
}

impl Address {
    pub fn new(host: impl Into<String>, port: u16) -> Self {
        Self { host: host.into(), port }
    }

    /// Reads `host:port,host:port`; an IPv6 address stands in brackets.
    pub fn parse_list(servers: &str) -> Result<Vec<Address>, ConnectionError> {
        let named = servers.split(',').map(str::trim).filter(|server| !server.is_empty());
        let addresses = named.map(Self::parse).collect::<Result<Vec<_>, _>>()?;
        if addresses.is_empty() { Err(ConnectionError::FindBootstrap) } else { Ok(addresses) }
    }

    fn parse(server: &str) -> Result<Address, ConnectionError> {
        let bad = || ConnectionError::ParseBootstrap { server: server.into() };
        let (host, port) = server.rsplit_once(':').ok_or_else(bad)?;
        let port = port.parse().map_err(|_| bad())?;
        let host = match host.strip_prefix('[') {
            Some(bracketed) => bracketed.strip_suffix(']').ok_or_else(bad)?,
            None if host.contains(':') => return Err(bad()),
            None => host,
        };
        if host.is_empty() || port == 0 { Err(bad()) } else { Ok(Address::new(host, port)) }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host.contains(':') {
            true => write!(f, "[{}]:{}", self.host, self.port),
            false => write!(f, "{}:{}", self.host, self.port),
        }
    }
}

/// What requests and answers go through, however it is secured.
pub trait Transport: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Transport for T {}

/// Opens the stream. A TLS handshake belongs here; SASL comes after the versions are agreed on, in the link's opening.
pub async fn open(address: &Address, security: &Security) -> io::Result<Box<dyn Transport>> {
    let stream = TcpStream::connect((address.host.as_str(), address.port)).await?;
    stream.set_nodelay(true)?;
    match security {
        Security::Plaintext => Ok(Box::new(stream)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bootstrap_lists_are_read() {
        let parsed = Address::parse_list(" a:1, b.example:9092 ,[::1]:3,").unwrap();
        assert_eq!(parsed.iter().map(Address::to_string).collect::<Vec<_>>(), ["a:1", "b.example:9092", "[::1]:3"]);
    }

    #[test]
    fn bad_bootstrap_lists_say_what_is_wrong() {
        assert_eq!(Address::parse_list(" , "), Err(ConnectionError::FindBootstrap));
        for server in ["a", "a:", "a:0", ":1", "a:b", "a:70000", "::1:3", "[::1:3", "PLAINTEXT://a:1"] {
            let error = Address::parse_list(server).unwrap_err();
            assert_eq!(error, ConnectionError::ParseBootstrap { server: server.into() });
        }
    }
}
