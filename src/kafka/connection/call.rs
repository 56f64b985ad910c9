//! Requests and their answers as bytes. Only flexible versions (KIP-482) are spoken: every Kafka that has share groups
//! has them, and their lengths can be checked before they are believed (see [`super::guarded`]).

use bytes::{BufMut, Bytes, BytesMut};
use kafka_protocol::messages::*;
use kafka_protocol::protocol::{Decodable, Encodable, Message};

use super::fields::Fields;
use super::guarded::Guarded;

/// The version of ApiVersions that is sent before anything is known about the broker. Kafka has it since 2.4.
pub const FIRST_VERSION: i16 = 3;

/// A request, with what is needed to write it and to read its answer.
pub trait Call: Send + Sync {
    type Answer: Send;
    const API: ApiKey;
    /// First and last version both sides of which are known here.
    const VERSIONS: (i16, i16);

    fn write(&self, out: &mut BytesMut, version: i16) -> Result<(), String>;
    fn read(answer: &mut Guarded, version: i16) -> Result<Self::Answer, String>;

    /// The API's name as Kafka's documentation has it.
    fn name() -> String {
        format!("{:?}", Self::API)
    }
}

/// For each request of kafka-protocol that is used: its answer, and its first flexible version.
macro_rules! calls {
    ($($api:ident: $request:ty => $answer:ty, from $first:literal;)*) => {$(
        impl Call for $request {
            type Answer = $answer;
            const API: ApiKey = ApiKey::$api;
            const VERSIONS: (i16, i16) = ($first, lesser(<$request as Message>::VERSIONS.max, <$answer as Message>::VERSIONS.max));

            fn write(&self, out: &mut BytesMut, version: i16) -> Result<(), String> {
                self.encode(out, version).map_err(|error| error.to_string())
            }

            fn read(answer: &mut Guarded, version: i16) -> Result<Self::Answer, String> {
                <$answer>::decode(answer, version).map_err(|error| error.to_string())
            }
        }
    )*};
}

calls! {
    ApiVersions: ApiVersionsRequest => ApiVersionsResponse, from 3;
    Metadata: MetadataRequest => MetadataResponse, from 12;
    FindCoordinator: FindCoordinatorRequest => FindCoordinatorResponse, from 4;
    DescribeConfigs: DescribeConfigsRequest => DescribeConfigsResponse, from 4;
    IncrementalAlterConfigs: IncrementalAlterConfigsRequest => IncrementalAlterConfigsResponse, from 1;
    CreateTopics: CreateTopicsRequest => CreateTopicsResponse, from 7;
    CreatePartitions: CreatePartitionsRequest => CreatePartitionsResponse, from 2;
    DeleteTopics: DeleteTopicsRequest => DeleteTopicsResponse, from 6;
    ListOffsets: ListOffsetsRequest => ListOffsetsResponse, from 6;
    ListGroups: ListGroupsRequest => ListGroupsResponse, from 5;
    DescribeGroups: DescribeGroupsRequest => DescribeGroupsResponse, from 5;
    ConsumerGroupDescribe: ConsumerGroupDescribeRequest => ConsumerGroupDescribeResponse, from 0;
    ShareGroupDescribe: ShareGroupDescribeRequest => ShareGroupDescribeResponse, from 1;
    OffsetFetch: OffsetFetchRequest => OffsetFetchResponse, from 8;
}

const fn lesser(a: i16, b: i16) -> i16 {
    if a < b { a } else { b }
}

/// The whole request with its size in front and version 2 of the request header.
pub fn frame(api: i16, version: i16, correlation: i32, client_id: &str, body: &[u8]) -> Result<BytesMut, String> {
    let too_long = |what: &str| format!("{what} is too long");
    let name_size = i16::try_from(client_id.len()).map_err(|_| too_long("the client id"))?;
    let size = 2 + 2 + 4 + 2 + client_id.len() + 1 + body.len();
    let mut out = BytesMut::with_capacity(4 + size);
    out.put_i32(i32::try_from(size).map_err(|_| too_long("the request"))?);
    out.put_i16(api);
    out.put_i16(version);
    out.put_i32(correlation);
    // The one text of the flexible header that is not compact, so that brokers can read it whatever the version.
    out.put_i16(name_size);
    out.put_slice(client_id.as_bytes());
    out.put_u8(0);
    out.put_slice(body);
    Ok(out)
}

/// Reads what follows the correlation id of an answer, to its last byte.
pub fn read_answer<C: Call>(answer: Bytes, version: i16) -> Result<C::Answer, String> {
    let mut buffer = Guarded::new(answer);
    // ApiVersions answers with the oldest header, as the broker may not know the version that was asked for.
    if C::API != ApiKey::ApiVersions {
        Fields(&mut buffer).tags().map_err(|error| error.to_string())?;
    }
    let answer = C::read(&mut buffer, version)?;
    match bytes::Buf::remaining(&buffer) {
        0 => Ok(answer),
        rest => Err(format!("{rest} bytes are left over")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_frame_has_its_size_and_the_flexible_header() {
        let framed = frame(3, 12, 7, "ab", b"body").unwrap();
        assert_eq!(&framed[..], b"\0\0\0\x11\0\x03\0\x0c\0\0\0\x07\0\x02ab\0body");
    }

    #[test]
    fn requests_are_written_in_every_version_that_may_be_agreed_on() {
        fn all<C: Call>(call: &C) {
            for version in C::VERSIONS.0..=C::VERSIONS.1 {
                let written = call.write(&mut BytesMut::new(), version);
                assert!(written.is_ok(), "{} {version}: {written:?}", C::name());
            }
        }
        all(&ApiVersionsRequest::default());
        all(&FindCoordinatorRequest::default());
        all(&ListGroupsRequest::default());
        all(&ShareGroupDescribeRequest::default());
        all(&OffsetFetchRequest::default());
        all(&ListOffsetsRequest::default());
        assert_eq!(<OffsetFetchRequest as Call>::VERSIONS.1, 9);
    }

    #[test]
    fn bytes_left_over_are_an_error() {
        let answer = Bytes::from_static(b"\0\0\0\0\0\0\0\x01\0?");
        let read = read_answer::<ListGroupsRequest>(answer, 5);
        assert_eq!(read.unwrap_err(), "1 bytes are left over");
    }

    /// Garbage that looks like an answer: small numbers, continued varints, text.
    fn garbage() -> impl Strategy<Value = Vec<u8>> {
        let byte = prop_oneof![4 => 0u8..6, 1 => any::<u8>(), 1 => Just(0xff), 1 => Just(0x80)];
        prop::collection::vec(byte, 0..300)
    }

    proptest! {
        #[test]
        fn garbage_never_panics(bytes in garbage()) {
            fn try_all<C: Call>(bytes: &[u8]) {
                for version in C::VERSIONS.0..=C::VERSIONS.1 {
                    let _unread = read_answer::<C>(Bytes::copy_from_slice(bytes), version);
                }
            }
            try_all::<ApiVersionsRequest>(&bytes);
            try_all::<MetadataRequest>(&bytes);
            try_all::<FindCoordinatorRequest>(&bytes);
            try_all::<DescribeConfigsRequest>(&bytes);
            try_all::<IncrementalAlterConfigsRequest>(&bytes);
            try_all::<CreateTopicsRequest>(&bytes);
            try_all::<CreatePartitionsRequest>(&bytes);
            try_all::<DeleteTopicsRequest>(&bytes);
            try_all::<ListOffsetsRequest>(&bytes);
            try_all::<ListGroupsRequest>(&bytes);
            try_all::<DescribeGroupsRequest>(&bytes);
            try_all::<ConsumerGroupDescribeRequest>(&bytes);
            try_all::<ShareGroupDescribeRequest>(&bytes);
            try_all::<OffsetFetchRequest>(&bytes);
        }
    }
}
