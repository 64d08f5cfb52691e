//! Values are inserted for all inputs into expressions, and the results are compared with the operations on values.

use super::*;
use crate::random::Random;
use crate::symbols::table::tests::{Values, byte_value, extend, of_inputs, put, value};

/// The values of all atoms for given values of the inputs, computed from the operation or the definition of each atom.
pub(in crate::gpu) fn values(expressions: &Expressions, inputs: &[([Expr; 8], u8)]) -> Values {
    let Expressions { table, functions, bytes, by_bits, names, relations, .. } = expressions;
    let mut values = of_inputs(table, inputs);
    loop {
        let count = values.len();
        extend(table, &mut values);
        for (bits, number) in by_bits {
            let Some(x) = byte_value(table, &values, bits) else { continue };
            let Byte { bits, functions: known, .. } = &bytes[*number as usize];
            bits.iter().enumerate().for_each(|(i, bit)| put(table, &mut values, *bit, x >> i & 1 == 1));
            for (part, atom) in known {
                let truth = functions.element(*part);
                put(table, &mut values, *atom, truth[usize::from(x) / 64] >> (x % 64) & 1 == 1);
            }
        }
        // An equation with one atom whose value is not known: that of a name, or of a definition.
        let of_names: Vec<(Expr, Expr)> = names.iter().map(|(expr, name)| (*expr, name.expr)).collect();
        let of_definitions = relations.values().map(|relation| (*relation, ZERO));
        for (x, y) in of_names.into_iter().chain(of_definitions) {
            let atoms = [table.atoms(x), table.atoms(y)].concat();
            let unknown: Vec<u32> = atoms.iter().copied().filter(|atom| !values.contains_key(atom)).collect();
            if let [atom] = unknown[..] {
                let sum =
                    atoms.iter().filter_map(|other| values.get(other)).fold(false, |sum, bit| sum ^ bit);
                values.insert(atom, sum);
            }
        }
        if values.len() == count {
            return values;
        }
    }
}

/// The value of an expression.
pub(in crate::gpu) fn value_of(expressions: &Expressions, values: &Values, expr: Expr) -> bool {
    value(&expressions.table, values, expr).expect("a value for each atom")
}

#[test]
fn circuits_have_the_values_of_the_operations() {
    for seed in 0..20 {
        let random = &mut Random(seed);
        let expressions = &mut Expressions::new();
        let inputs = [expressions.input(true), expressions.input(true), expressions.input(false)];
        // A bit for each step, and the step: a function of three earlier bits, or an S-box of eight earlier bits.
        let mut bits: Vec<Expr> = inputs.as_flattened().to_vec();
        let mut steps: Vec<(u8, [usize; 8])> = Vec::new();
        for step in 0..40 {
            let places: [usize; 8] = std::array::from_fn(|i| match step % 2 {
                // Bits of one byte, so that functions of a byte occur.
                0 => 8 * (step / 2 % 3) + random.below(8),
                _ => random.below(if i < 2 { bits.len() } else { 24 }),
            });
            let table = random.next() as u8;
            if step % 8 == 7 {
                let result = expressions.sub_byte(places.map(|place| bits[place]), table & 1 == 1);
                bits.push(result[usize::from(table >> 1) % 8]);
            } else {
                let owned = |expr: Expr| Bit { expr, owner: 0 };
                bits.push(expressions.logic(table, [0, 1, 2].map(|i| owned(bits[places[i]]))).expr);
            }
            steps.push((table, places));
        }
        for _ in 0..8 {
            let given: [u8; 3] = std::array::from_fn(|_| random.next() as u8);
            let mut right: Vec<bool> = (0..24).map(|bit| given[bit / 8] >> (bit % 8) & 1 == 1).collect();
            for (step, (table, places)) in steps.iter().enumerate() {
                let index =
                    |count: usize| (0..count).fold(0, |index, i| index | usize::from(right[places[i]]) << i);
                right.push(if step % 8 == 7 {
                    aes::sub_byte(index(8) as u8, table & 1 == 1) >> (usize::from(table >> 1) % 8) & 1 == 1
                } else {
                    let index = index(3);
                    table >> (4 * (index & 1) + (index & 2) + (index >> 2 & 1)) & 1 == 1
                });
            }
            let values = values(expressions, &[0, 1, 2].map(|i| (inputs[i], given[i])));
            let found: Vec<bool> = bits.iter().map(|bit| value_of(expressions, &values, *bit)).collect();
            assert_eq!(found, right, "seed {seed}");
        }
    }
}

#[test]
fn a_name_replaces_the_expression_of_its_owner_only() {
    let expressions = &mut Expressions::new();
    let ([x, ..], [name, ..]) = (expressions.input(false), expressions.input(true));
    let sum = expressions.xor(x, ONE);
    expressions.name(sum, Bit { expr: name, owner: 5 });
    // The name is that of x + 1 and of x, because a name has no constant.
    let inverted = expressions.xor(name, ONE);
    assert_eq!(expressions.settle(sum, 0), Bit { expr: name, owner: 5 });
    assert_eq!(expressions.settle(x, 0), Bit { expr: inverted, owner: 5 });
}

#[test]
fn functions_of_several_owners_are_sums_or_unknown() {
    let expressions = &mut Expressions::new();
    let (own, shared) = (expressions.input(true), expressions.input(false));
    // The same expression of two owners, and a shared one.
    let bits = [(own, 1), (own, 2), (shared, 0)].map(|(byte, owner)| Bit { expr: byte[0], owner });
    for table in 0..=255u8 {
        let result = expressions.logic(table, bits);
        let depends = |weight: u8| (0..8).any(|i| table >> i & 1 != table >> (i ^ weight) & 1);
        let is_sum = (0..8u8).all(|i| {
            let linear = [4, 2, 1].iter().filter(|weight| i & *weight != 0);
            linear.fold(table & 1, |sum, weight| sum ^ (table ^ table >> weight) & 1) == table >> i & 1
        });
        for index in 0..8u8 {
            let of_owner = |owner: u32, expr: Expr| {
                let bit = if owner == 2 { index >> 1 & 1 } else { index >> 2 };
                let values = values(expressions, &[(own, bit), (shared, index & 1)]);
                value(&expressions.table, &values, expr)
            };
            let parts = match result.owner {
                MANY => expressions.lists[result.expr as usize].clone(),
                owner => vec![(owner, result.expr)],
            };
            let found =
                parts.into_iter().try_fold(false, |sum, (owner, expr)| Some(sum ^ of_owner(owner, expr)?));
            let is_known = is_sum || !(depends(4) && depends(2));
            assert_eq!(found, is_known.then_some(table >> index & 1 == 1), "table {table:#x} of {index:#b}");
        }
    }
}
