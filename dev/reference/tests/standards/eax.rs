//! The vectors of "The EAX Mode of Operation" (Bellare, Rogaway and Wagner, FSE 2004), appendix.

use crate::hex;
use lockstep_reference::{Aes, eax};

/// Message, key, nonce, header, and ciphertext with tag.
const VECTORS: [[&str; 5]; 3] = [
    [
        "",
        "233952dee4d5ed5f9b9c6d6ff80ff478",
        "62ec67f9c3a4a407fcb2a8c49031a8b3",
        "6bfb914fd07eae6b",
        "e037830e8389f27b025a2d6527e79d01",
    ],
    [
        "f7fb",
        "91945d3f4dcbee0bf45ef52255f095a4",
        "becaf043b0a23d843194ba972c66debd",
        "fa3bfd4806eb53fa",
        "19dd5c4c9331049d0bdab0277408f67967e5",
    ],
    [
        "1a47cb4933",
        "01f74ad64077f2e704c0f60ada3dd523",
        "70c3db4f0d26368400a10ed05d2bff5e",
        "234a3463c1264ac6",
        "d851d5bae03a59f238a23e39199dc9266626c40f80",
    ],
];

#[test]
fn published_vectors() {
    for vector in VECTORS {
        let [message, key, nonce, header, sealed] = vector.map(hex);
        let aes = Aes::new(&key);
        let (ciphertext, tag) = sealed.split_at(message.len());
        assert_eq!(eax::seal(&aes, &nonce, &header, &message, 16), (ciphertext.to_vec(), tag.to_vec()));
        assert_eq!(eax::open(&aes, &nonce, &header, ciphertext, tag), Some(message.clone()));
        assert_eq!(eax::open(&aes, &nonce, &header, ciphertext, &tag[..4]), Some(message), "a part of a tag");
        assert_eq!(eax::open(&aes, &nonce, &header[1..], ciphertext, tag), None);
        assert_eq!(eax::open(&aes, &nonce[1..], &header, ciphertext, tag), None);
        assert_eq!(eax::open(&aes, &nonce, &header, ciphertext, &[]), None, "an empty tag");
    }
}
