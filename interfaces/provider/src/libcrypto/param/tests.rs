use super::*;

/// Requests a value with this space, and returns the bytes of the space, which were 0x5a, and the length of the value.
fn request(
    data_type: c_uint,
    room: usize,
    get: impl Fn(&mut GetParam<'_>) -> Outcome<()>,
) -> Outcome<(Vec<u8>, usize)> {
    // The value begins at an odd address.
    let mut space = vec![0x5a; 1 + room + 24];
    let mut param = entry(c"tag", data_type, room);
    param.data = space[1..].as_mut_ptr().cast();
    let mut array = [param, END];
    // SAFETY: the array has an end, and its data are valid for the stated size.
    unsafe { iter_get_params(array.as_mut_ptr()) }.try_for_each(|mut param| get(&mut param))?;
    assert!(space[1 + room..].iter().all(|byte| *byte == 0x5a), "nothing is written beyond the space");
    Ok((space[1..1 + room].to_vec(), array[0].return_size))
}

#[test]
fn bytes_of_every_length_are_copied_to_their_space() {
    let value: Vec<u8> = (1..=33).collect();
    for len in 0..=33 {
        for room in 0..=40 {
            let found = request(PARAM_OCTET_STRING, room, |param| param.octets(&value[..len]));
            let mut expected = value[..len].to_vec();
            expected.resize(room.max(len), 0x5a);
            let expected = if room < len { Err(Reason::ParameterRoom) } else { Ok((expected, len)) };
            assert_eq!(found, expected, "{len} bytes, space for {room}");
        }
    }
}

#[test]
fn the_end_of_a_text_is_copied_if_there_is_space() {
    for text in [c"fifteen letters", c"sixteen  letters", c"seventeen letters"] {
        let len = text.count_bytes();
        for room in len..=len + 2 {
            let found = request(PARAM_UTF8_STRING, room, |param| param.text(text));
            let mut expected = text.to_bytes_with_nul().to_vec();
            expected.resize(len + 2, 0x5a);
            expected.truncate(room);
            assert_eq!(found, Ok((expected, len)), "{text:?}, space for {room}");
        }
    }
}
