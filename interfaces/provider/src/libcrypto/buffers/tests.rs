use super::*;

impl<'a> Buffers<'a> {
    /// An input, with separate output space.
    pub(crate) fn separate(input: &'a [u8], output: &'a mut [u8]) -> Self {
        // SAFETY: both ranges are borrowed as long as the value lives.
        unsafe { Buffers::new(input.as_ptr(), input.len(), output.as_mut_ptr(), output.len()) }.unwrap()
    }

    /// Input in the first bytes of the output space.
    pub(crate) fn in_place_in(output: &'a mut [u8], len: usize) -> Self {
        assert!(len <= output.len());
        Buffers { len, ..Buffers::in_place_of(output) }
    }
}
