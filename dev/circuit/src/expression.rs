//! Writes lookup tables as expressions, for languages without an instruction for them.

use std::fmt::Write;
use std::sync::OnceLock;

/// The last operation of an expression in which `&`, `|`, `^` and `~` combine three bits. A `u8` is the truth table of an operand of this
/// operation.
#[derive(Debug, Clone, Copy)]
enum Step {
    Operand(usize),
    Not(u8),
    Two(char, u8, u8),
}

/// For each truth table, the last operation of its shortest expression, and the number of operations of this expression.
type Ways = [Option<(Step, u32)>; 256];

/// The truth tables of the expressions that consist of one of the three bits.
const OPERANDS: [u8; 3] = [0xF0, 0xCC, 0xAA];

/// Finds the shortest expressions of all functions of three bits by relaxation, which ends when no expression can be
/// shortened.
fn ways() -> &'static Ways {
    static WAYS: OnceLock<Ways> = OnceLock::new();
    WAYS.get_or_init(|| {
        let mut ways: Ways = [None; 256];
        for (index, table) in OPERANDS.into_iter().enumerate() {
            ways[usize::from(table)] = Some((Step::Operand(index), 0));
        }
        let mut changed = true;
        while changed {
            changed = false;
            let mut offer = |ways: &mut Ways, table: u8, step: Step, cost: u32| {
                let place = &mut ways[usize::from(table)];
                if place.is_none_or(|(_, known)| cost < known) {
                    *place = Some((step, cost));
                    changed = true;
                }
            };
            for f in 0..=255u8 {
                let Some((_, f_cost)) = ways[usize::from(f)] else { continue };
                offer(&mut ways, !f, Step::Not(f), f_cost + 1);
                for g in 0..f {
                    let Some((_, g_cost)) = ways[usize::from(g)] else { continue };
                    let cost = f_cost + g_cost + 1;
                    offer(&mut ways, f ^ g, Step::Two('^', f, g), cost);
                    offer(&mut ways, f & g, Step::Two('&', f, g), cost);
                    offer(&mut ways, f | g, Step::Two('|', f, g), cost);
                }
            }
        }
        ways
    })
}

/// The shortest expression that computes the truth table from the operands, and the number of its operations. Each operation
/// except the outermost is in parentheses.
pub fn cheapest(table: u8, operands: [&str; 3]) -> (String, u32) {
    let mut text = String::new();
    let cost = ways()[usize::from(table)].map_or(0, |(_, cost)| cost);
    write(&mut text, table, &operands, true);
    (text, cost)
}

fn write(text: &mut String, table: u8, operands: &[&str; 3], outermost: bool) {
    let (step, _) = ways()[usize::from(table)].expect("and, or, xor and not make every function");
    match step {
        Step::Operand(index) => text.push_str(operands[index]),
        Step::Not(f) => {
            text.push('~');
            write(text, f, operands, false);
        }
        Step::Two(operator, f, g) => {
            let (open, close) = if outermost { ("", "") } else { ("(", ")") };
            text.push_str(open);
            write(text, f, operands, false);
            let _ = write!(text, " {operator} ");
            write(text, g, operands, false);
            text.push_str(close);
        }
    }
}
