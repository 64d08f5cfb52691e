
use super::*;

#[test]
fn a_key_in_place_of_launch_options_is_not_shown() {
    let key = "000102030405060708090a0b0c0d0e0f";
    for device in [None, Some("cpu")] {
        let mut settings = Settings { device: device.map(Into::into), ..Settings::default() };
        settings.set("launch", key).unwrap();
        let found = |fallback| Found { settings: settings.clone(), fallback, warnings: Vec::new() };
        let error = choose(found(None)).err().unwrap();
        let (.., warnings) = choose(found(Some(Settings::default()))).ok().unwrap();
        for message in [&error, &warnings[0]] {
            assert!(message.contains("(a key, not shown)") && !message.contains(key), "{message}");
        }
    }
}

#[test]
fn one_of_several_threads_is_the_first() {
    for _ in 0..100 {
        let flag = PerProcess::default();
        let firsts = std::thread::scope(|scope| {
            let threads = [0; 4].map(|_| scope.spawn(|| is_first(&flag)));
            threads.map(|thread| thread.join().unwrap())
        });
        assert_eq!(firsts.iter().filter(|first| **first).count(), 1);
    }
}
