//! Words of 32 bits: the operations of instructions on numbers and on bits of symbols.

use super::expressions::{Bit, Expr, Expressions, common_owner};

/// The value of a register.
#[derive(Clone)]
pub(super) enum Word {
    Known(u32),
    Bits(Box<[Bit; 32]>),
}

pub(super) const ZERO: Word = Word::Known(0);
/// Tables of [`Expressions::logic`].
const XOR3: u8 = 0x96;
const MAJORITY: u8 = 0xe8;

impl Word {
    /// A word of bits, which is a number if all bits are known.
    pub(super) fn of(bits: [Bit; 32]) -> Word {
        let mut number = 0;
        for (place, bit) in bits.iter().enumerate() {
            match bit.value() {
                Some(value) => number |= u32::from(value) << place,
                None => return Word::Bits(Box::new(bits)),
            }
        }
        Word::Known(number)
    }

    pub(super) fn from_bits(bits: &[Bit]) -> Word {
        Word::of(std::array::from_fn(|place| bits.get(place).copied().unwrap_or_default()))
    }

    pub(super) fn number(&self) -> Option<u32> {
        match self {
            Word::Known(number) => Some(*number),
            Word::Bits(_) => None,
        }
    }

    pub(super) fn bit(&self, place: usize) -> Bit {
        match self {
            Word::Known(number) => Bit::known(number >> place & 1 == 1),
            Word::Bits(bits) => bits[place],
        }
    }

    pub(super) fn bits(&self) -> [Bit; 32] {
        std::array::from_fn(|place| self.bit(place))
    }

    pub(super) fn not(&self, expressions: &mut Expressions) -> Word {
        logic(expressions, 0x0f, [self, &ZERO, &ZERO])
    }
}

/// A function of three bits for each place.
pub(super) fn logic(expressions: &mut Expressions, table: u8, inputs: [&Word; 3]) -> Word {
    if let [Word::Known(a), Word::Known(b), Word::Known(c)] = inputs {
        let term = |i: u8| {
            let input = |weight: u8, value: u32| if i & weight != 0 { value } else { !value };
            input(4, *a) & input(2, *b) & input(1, *c)
        };
        let terms = (0..8).filter(|i| table >> i & 1 == 1).map(term);
        return Word::Known(terms.fold(0, |result, term| result | term));
    }
    // Neighbouring bits often have the same expressions.
    let mut last: Option<([Expr; 3], Bit)> = None;
    Word::of(std::array::from_fn(|place| {
        let bits = inputs.map(|word| word.bit(place));
        let Some(owner) = common_owner(&bits) else { return expressions.logic(table, bits) };
        let exprs = bits.map(|bit| bit.expr);
        let result = match last {
            Some((before, result)) if before == exprs => result,
            _ => expressions.function_of(table, exprs),
        };
        last = Some((exprs, result));
        expressions.owned(result, owner)
    }))
}

/// The sum of two numbers and a carry. The lists of bits have the same length.
fn add_bits(expressions: &mut Expressions, x: &[Bit], y: &[Bit], mut carry: Bit) -> Vec<Bit> {
    let each = |(a, b): (&Bit, &Bit)| {
        let bits = [*a, *b, carry];
        carry = expressions.logic(MAJORITY, bits);
        expressions.logic(XOR3, bits)
    };
    x.iter().zip(y).map(each).collect()
}

/// The sum of two words and a carry, modulo 2^32.
pub(super) fn add(expressions: &mut Expressions, x: &Word, y: &Word, carry: bool) -> Word {
    if let (Word::Known(x), Word::Known(y)) = (x, y) {
        return Word::Known(x.wrapping_add(*y).wrapping_add(carry.into()));
    }
    Word::from_bits(&add_bits(expressions, &x.bits(), &y.bits(), Bit::known(carry)))
}

/// x * y + z with a sum of 64 bits, as two words.
pub(super) fn multiply_add(expressions: &mut Expressions, x: &Word, y: &Word, z: [&Word; 2]) -> [Word; 2] {
    let mut product = match (x, y) {
        (Word::Known(number), word) | (word, Word::Known(number)) => scaled(expressions, word, *number),
        _ => product_of_symbols(expressions, x, y),
    };
    if z.iter().any(|word| word.number() != Some(0)) {
        let z: Vec<Bit> = z[0].bits().into_iter().chain(z[1].bits()).collect();
        product = add_bits(expressions, &product, &z, Bit::default());
    }
    [Word::from_bits(&product[..32]), Word::from_bits(&product[32..])]
}

/// The product of a word and a number: a sum of shifted words.
fn scaled(expressions: &mut Expressions, word: &Word, number: u32) -> Vec<Bit> {
    let mut sum = vec![Bit::default(); 64];
    for shift in (0..32).filter(|shift| number >> shift & 1 == 1) {
        let mut term = vec![Bit::default(); 64];
        term[shift..shift + 32].copy_from_slice(&word.bits());
        let is_first = number.trailing_zeros() == shift as u32;
        sum = if is_first { term } else { add_bits(expressions, &sum, &term, Bit::default()) };
    }
    sum
}

/// The product of two words of symbols. If the bits of each word are at every fourth place and at most 15 products of bits are added at a
/// place, no sum reaches the place of the next one. Each fourth bit of the product is then the sum modulo two, a coefficient of the
/// carry-less product. The other bits are not known.
fn product_of_symbols(expressions: &mut Expressions, x: &Word, y: &Word) -> Vec<Bit> {
    let (x, y) = (x.bits(), y.bits());
    let places = |bits: &[Bit; 32]| -> Vec<usize> {
        (0..32).filter(|place| bits[*place].value() != Some(false)).collect()
    };
    let (of_x, of_y) = (places(&x), places(&y));
    let is_spread = |places: &[usize]| places.iter().all(|place| place % 4 == places[0] % 4);
    let mut owner = Some(0);
    for bit in x.iter().chain(&y) {
        owner = owner.and_then(|owner| common_owner(&[*bit, Bit { expr: 0, owner }, Bit::default()]));
    }
    let most = of_x.len().min(of_y.len());
    let Some(owner) = owner.filter(|_| is_spread(&of_x) && is_spread(&of_y) && most < 16) else {
        return (0..64).map(|_| expressions.unknown()).collect();
    };
    let product = expressions.carryless(x.map(|bit| bit.expr), y.map(|bit| bit.expr));
    let first = (of_x[0] + of_y[0]) % 4;
    // The highest bit of the highest sum.
    let end = of_x[of_x.len() - 1] + of_y[of_y.len() - 1] + 4;
    let each = |place: usize| match place {
        _ if place < of_x[0] + of_y[0] || place >= end => Bit::default(),
        _ if place % 4 != first => expressions.unknown(),
        _ => expressions.settle(product[place], owner),
    };
    (0..64).map(each).collect()
}

/// A shift of a pair of words.
pub(super) fn shifted(words: [&Word; 2], count: usize, is_left: bool, fill: Bit) -> [Word; 2] {
    let bits: Vec<Bit> = words[0].bits().into_iter().chain(words[1].bits()).collect();
    let each = |place: usize| match is_left {
        true => place.checked_sub(count).map_or(Bit::default(), |from| bits[from]),
        false => bits.get(place + count).copied().unwrap_or(fill),
    };
    let result: Vec<Bit> = (0..64).map(each).collect();
    [Word::from_bits(&result[..32]), Word::from_bits(&result[32..])]
}

/// Selects four of eight bytes by digits; a digit of 8 and more copies the sign bit of the byte (PTX: prmt).
pub(super) fn permuted(low: &Word, high: &Word, digits: u32) -> Word {
    Word::of(std::array::from_fn(|place| {
        let digit = digits >> (4 * (place / 8)) & 15;
        let word = if digit & 4 == 0 { low } else { high };
        let bit = if digit & 8 == 0 { place % 8 } else { 7 };
        word.bit(8 * (digit & 3) as usize + bit)
    }))
}
