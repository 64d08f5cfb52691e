//! Lockstep's `CryptoProvider` for rustls, in TLS 1.2, TLS 1.3 and QUIC. The other side is ring, OpenSSL, or the
//! vectors of RFC 9001.

mod common;
mod connections;
mod openssl;
mod provider;
mod quic;
mod records;
mod residue;
