
use super::*;

/// Wrong, truncated and missing output files are detected.
#[test]
fn wrong_files_are_found() {
    let folder = tempfile::tempdir().unwrap();
    let engine = Engine::builder().device("cpu").threads(1).build().unwrap();
    let key = FileKey::generate().unwrap();
    let files = TestFiles { folder, plaintext: random(1000), key, engine };
    let message = lockstep::seal(&files.engine, &files.key, b"", &files.plaintext).unwrap();
    let (zero, iv) = ([7; 32], [9; 16]);
    let mut ctr = files.plaintext.clone();
    let cipher = CipherKey::new(Cipher::Ctr, &zero).unwrap();
    Cipher::Ctr
        .one(
            files.engine.planner(),
            Direction::Encrypt,
            &cipher,
            &mut iv.clone(),
            lockstep::hazmat::data::Data::in_place(&mut ctr),
        )
        .unwrap();
    for (output, right) in [
        (Output::Message, message),
        (Output::Plaintext, files.plaintext.clone()),
        (Output::Ctr(zero, iv), ctr),
    ] {
        let contender = Contender::new("c".into(), Path::new("true"), output);
        let out = files.path("out");
        fs::write(&out, &right).unwrap();
        verify(&files, &contender, &out).unwrap();
        let mut wrong = right.clone();
        wrong[500] ^= 1;
        fs::write(&out, &wrong).unwrap();
        assert!(verify(&files, &contender, &out).is_err());
        fs::write(&out, &right[..900]).unwrap();
        assert!(verify(&files, &contender, &out).is_err());
        fs::remove_file(&out).unwrap();
        assert!(verify(&files, &contender, &out).is_err());
    }
}
