//! How a ShareGroupDLQ says where its Kafka cluster is and what proves who we are.

use super::schema;
use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How to reach Kafka: exactly one of bootstrapServers, strimziCluster and bindingSecret.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("[has(self.bootstrapServers), has(self.strimziCluster), has(self.bindingSecret)].exists_one(given, given)")
    .message("kafka needs exactly one of bootstrapServers, strimziCluster and bindingSecret"))]
#[x_kube(validation = Rule::new("!has(self.bindingSecret) || (!has(self.tls) && !has(self.sasl))")
    .message("with bindingSecret, tls and sasl come from that Secret; leave them out")
    .reason(Reason::FieldValueForbidden))]
pub struct Kafka {
    /// Brokers to ask first: host:port, separated by commas without spaces.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 4096))]
    #[x_kube(validation = Rule::new(r"self.matches('^([a-zA-Z0-9._-]+|\\[[0-9a-fA-F:.]+\\]):[0-9]{1,5}(,([a-zA-Z0-9._-]+|\\[[0-9a-fA-F:.]+\\]):[0-9]{1,5})*$')")
        .message("bootstrapServers is host:port, several of them separated by commas without spaces"))]
    pub bootstrap_servers: Option<String>,

    /// A Strimzi Kafka resource in this namespace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub strimzi_cluster: Option<StrimziCluster>,

    /// A Secret of type servicebinding.io/kafka in this namespace, as Strimzi's KafkaAccess writes it. It brings its own TLS and SASL.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub binding_secret: Option<BindingSecret>,

    /// Absent: plaintext. Empty ({}): TLS with the system's roots.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls: Option<Tls>,

    /// Absent: no user name, or the one of the client certificate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sasl: Option<Sasl>,
}

/// A Strimzi Kafka resource in this namespace.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct StrimziCluster {
    /// Name of the Kafka resource.
    #[schemars(with = "schema::ResourceName")]
    pub name: String,

    /// Name of one of its listeners. Absent: its only internal listener.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63), regex(pattern = "^[a-z0-9]+$"))]
    pub listener: Option<String>,
}

/// A Secret that holds a whole connection (servicebinding.io/kafka).
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct BindingSecret {
    /// Name of the Secret.
    #[schemars(with = "schema::ResourceName")]
    pub name: String,
}

/// TLS towards the brokers.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct Tls {
    /// Certificates to trust. Absent: the system's roots.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ca_secret: Option<CaSecret>,

    /// The certificate to show to the brokers. Absent: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_secret: Option<ClientSecret>,
}

/// A Secret with CA certificates in PEM.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct CaSecret {
    /// Name of the Secret.
    #[schemars(with = "schema::ResourceName")]
    pub name: String,

    /// The key to trust. Absent: every key that ends in .crt.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::SecretKey>")]
    pub key: Option<String>,
}

/// A Secret with a client certificate and its private key in PEM.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct ClientSecret {
    /// Name of the Secret.
    #[schemars(with = "schema::ResourceName")]
    pub name: String,

    /// The key of the certificate.
    #[serde(default = "user_crt")]
    #[schemars(with = "schema::SecretKey")]
    pub cert_key: String,

    /// The key of the private key.
    #[serde(default = "user_key")]
    #[schemars(with = "schema::SecretKey")]
    pub key_key: String,
}

/// SASL towards the brokers.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct Sasl {
    /// SCRAM-SHA-512, SCRAM-SHA-256, PLAIN or OAUTHBEARER.
    pub mechanism: SaslMechanism,

    /// Where user name and password are.
    pub secret: SaslSecret,
}

#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
pub enum SaslMechanism {
    #[serde(rename = "SCRAM-SHA-512")]
    ScramSha512,
    #[serde(rename = "SCRAM-SHA-256")]
    ScramSha256,
    #[serde(rename = "PLAIN")]
    Plain,
    #[serde(rename = "OAUTHBEARER")]
    OauthBearer,
}

/// A Secret with a user name and a password.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct SaslSecret {
    /// Name of the Secret.
    #[schemars(with = "schema::ResourceName")]
    pub name: String,

    /// The key of the user name.
    #[serde(default = "username")]
    #[schemars(with = "schema::SecretKey")]
    pub username_key: String,

    /// The key of the password.
    #[serde(default = "password")]
    #[schemars(with = "schema::SecretKey")]
    pub password_key: String,
}

fn user_crt() -> String {
    "user.crt".into()
}

fn user_key() -> String {
    "user.key".into()
}

fn username() -> String {
    "username".into()
}

fn password() -> String {
    "password".into()
}
