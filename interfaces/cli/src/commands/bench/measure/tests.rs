use super::*;

fn measured(contenders: &mut [Contender]) -> Result<Vec<Measured>> {
    let (rounds, time) = (3, Duration::from_micros(100));
    let setting = Setting { rounds, time, times_calls: true };
    super::rounds(&setting, contenders, 64, |_| Ok(()))
}

fn adding(what: u8) -> Run {
    Box::new(move |data, call| {
        data.iter_mut().for_each(|byte| *byte = byte.wrapping_add(what ^ call as u8));
        Ok(u128::from(call))
    })
}

fn contender(run: Run) -> Contender {
    Contender { name: "c".into(), run, verifier: adding(3), setup_seconds: 0.0 }
}

#[test]
fn correct_contenders_are_measured() {
    let mut contenders = [contender(adding(3)), contender(adding(3))];
    let results = measured(&mut contenders).unwrap();
    assert_eq!(results.len(), 2);
    for one in results {
        let Rate { median, least, most } = one.rate;
        assert!(0.0 < least && least <= median && median <= most);
        // The times of all calls are recorded.
        assert!(one.times.len() >= 3 && one.times.is_sorted(), "{:?}", one.times);
    }
}

/// If one of many calls returns wrong data or a wrong digest, this is detected.
#[test]
fn one_wrong_call_is_found() {
    for wrong_data in [true, false] {
        let mut right = adding(3);
        let run = move |data: &mut [u8], call| {
            let digest = right(data, call)?;
            if call != 7 {
                return Ok(digest);
            }
            data[5] ^= u8::from(wrong_data) << 4;
            Ok(digest ^ u128::from(!wrong_data))
        };
        let error = measured(&mut [contender(Box::new(run))]).unwrap_err();
        assert!(error.to_string().contains("different results"), "{error}");
    }
}

/// A contender that does nothing is detected, although the contender before it wrote the right output into the buffer.
#[test]
fn the_output_of_another_contender_is_not_accepted() {
    let same = || -> Run {
        Box::new(|data, _| {
            data.fill(7);
            Ok(0)
        })
    };
    let contender = |run| Contender { name: "c".into(), run, verifier: same(), setup_seconds: 0.0 };
    measured(&mut [contender(same()), contender(same())]).unwrap();
    let idle = Box::new(|_: &mut [u8], _| Ok(0));
    let error = measured(&mut [contender(same()), contender(idle)]).unwrap_err();
    assert!(error.to_string().contains("different results"), "{error}");
}

#[test]
fn medians() {
    assert_eq!(Rate::of(vec![3.0, 1.0, 2.0]), Rate { median: 2.0, least: 1.0, most: 3.0 });
    assert_eq!(Rate::of(vec![4.0, 1.0, 2.0, 3.0]).median, 2.5);
}

#[test]
fn stretches_are_timed() {
    let (_, spent) = timed(|| {
        let before = process_time();
        while process_time() - before < Duration::from_millis(50) {
            std::hint::black_box(0);
        }
    });
    assert!(spent.cpu >= Duration::from_millis(50));
    let (slept, spent) = timed(|| {
        std::thread::sleep(Duration::from_millis(20));
        7
    });
    assert!(slept == 7 && spent.elapsed >= Duration::from_millis(20));
}
