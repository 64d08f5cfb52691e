//! CMAC and GMAC through EVP_MAC: the MACs of the default provider with this provider's ciphers (selected by property
//! query), and the MACs of this provider, if there are any.

use crate::evp::{Mac, Params};
use crate::harness::{bytes, library, query};

/// The MACs to test, each with the property query for its cipher.
fn macs(name: &str) -> Vec<(Mac, String)> {
    let mut all = vec![(library().mac(name, "provider=default").expect("in the default provider"), query())];
    match library().mac(name, "provider=lockstep") {
        Some(own) => all.push((own, query())),
        None => eprintln!(
            "lockstep has no {name} of its own: only its ciphers under the default provider's are tried"
        ),
    }
    all
}

fn reference(name: &str) -> Mac {
    library().mac(name, "provider=default").expect("in the default provider")
}

/// Computes the MAC of data that are passed in pieces. `mac` uses the cipher that `query` selects.
fn run(
    mac: &Mac,
    query: &str,
    cipher: &str,
    iv: Option<&[u8]>,
    key: &[u8],
    pieces: &[&[u8]],
) -> Option<Vec<Vec<u8>>> {
    let params = || {
        let params = Params::new().string("cipher", cipher).string("properties", query);
        match iv {
            Some(iv) => params.bytes("iv", iv),
            None => params,
        }
    };
    let running = mac.start(key, &params())?;
    let mut copy = None;
    for (i, piece) in pieces.iter().enumerate() {
        assert!(running.update(piece));
        if i == 0 {
            copy = running.copy();
        }
    }
    let mut all = vec![running.finish()?];
    // The context is copied in the middle, and the copy processes the rest. The default provider of 3.0.2 cannot copy a
    // context of GCM, and therefore of GMAC.
    assert!(copy.is_some() || query == "provider=default", "no copy of a MAC with {cipher} of {query}");
    if let Some(copy) = copy {
        pieces[1..].iter().for_each(|piece| assert!(copy.update(piece)));
        assert_eq!(copy.finish().as_ref(), all.last(), "the copy's MAC");
    }
    // All of the data are processed again, with a new key.
    assert!(running.restart(Some(&key.iter().map(|b| b ^ 1).collect::<Vec<_>>()), &params()));
    pieces.iter().for_each(|piece| assert!(running.update(piece)));
    all.push(running.finish()?);
    Some(all)
}

#[test]
fn cmac_of_messages_of_all_lengths_in_pieces() {
    for (cipher, n) in [("AES-128-CBC", 16), ("AES-192-CBC", 24), ("AES-256-CBC", 32)] {
        let key = bytes(n, 1);
        for (mac, query) in macs("CMAC") {
            for n in (0..=100).chain([255, 4096, 4097, 100_000]) {
                let data = bytes(n, 2);
                let (a, b) = data.split_at(n / 3);
                for pieces in [&[&data[..]][..], &[a, b], &[a, &[], &b[..b.len() / 2], &b[b.len() / 2..]]] {
                    let expected = run(&reference("CMAC"), "provider=default", cipher, None, &key, pieces);
                    assert!(expected.is_some());
                    assert_eq!(run(&mac, &query, cipher, None, &key, pieces), expected, "{cipher}: {n}");
                }
            }
        }
    }
}

#[test]
fn gmac_of_messages_of_all_lengths_in_pieces() {
    for (cipher, n) in [("AES-128-GCM", 16), ("AES-192-GCM", 24), ("AES-256-GCM", 32)] {
        let key = bytes(n, 1);
        for (mac, query) in macs("GMAC") {
            for (n, iv) in (0..=100).map(|n| (n, 12)).chain([(4096, 12), (4097, 1), (70_000, 16), (100, 60)])
            {
                let data = bytes(n, 2);
                let (a, b) = data.split_at(n / 3);
                let iv = bytes(iv, 3);
                for pieces in [&[&data[..]][..], &[a, b], &[a, &[], b]] {
                    let expected =
                        run(&reference("GMAC"), "provider=default", cipher, Some(&iv), &key, pieces);
                    assert!(expected.is_some());
                    assert_eq!(run(&mac, &query, cipher, Some(&iv), &key, pieces), expected, "{cipher}: {n}");
                }
            }
        }
    }
}

#[test]
fn a_wrong_key_or_cipher_for_a_mac_is_refused() {
    for (mac, query) in macs("CMAC") {
        let start = |cipher, key: &[u8]| {
            mac.start(key, &Params::new().string("cipher", cipher).string("properties", &query)).is_some()
        };
        assert!(start("AES-128-CBC", &[1; 16]));
        assert!(!start("AES-128-CBC", &[1; 17]));
        assert!(!start("AES-256-CBC", &[1; 16]));
        assert!(!start("AES-nothing", &[1; 16]));
    }
    for (mac, query) in macs("GMAC") {
        let start = |cipher, key: &[u8]| {
            let params =
                Params::new().string("cipher", cipher).string("properties", &query).bytes("iv", &[1; 12]);
            mac.start(key, &params).is_some()
        };
        assert!(start("AES-128-GCM", &[1; 16]));
        assert!(!start("AES-128-CBC", &[1; 16]));
        assert!(!start("AES-128-GCM", &[1; 15]));
    }
}
