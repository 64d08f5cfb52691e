//! Tests of Lockstep's `CryptoProvider` for rustls, in TLS 1.2, TLS 1.3 and QUIC. The results are compared with ring, OpenSSL and the
//! vectors of RFC 9001.

mod common;
mod connections;
mod openssl;
mod provider;
mod quic;
mod records;
mod residue;
