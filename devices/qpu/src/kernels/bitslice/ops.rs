//! Operations on bit planes.

use crate::compiler::{Action, Code, Input, Op, Output, Read, Rotation, Variable, Write};
use crate::isa::{AddOp, Condition, MulOp};

/// Sums and differences of bytes. Both ALUs have these operations, with the same results.
const DIFFERENCE: Action = Action::Either(AddOp::V8subs, MulOp::V8subs);
const SUM: Action = Action::Either(AddOp::V8adds, MulOp::V8adds);

/// Appends operations to a program.
pub(super) struct Ops<'c> {
    pub(super) code: &'c mut Code,
}

impl Ops<'_> {
    fn push(&mut self, action: Action, inputs: [Input; 2], output: Output) -> &mut Op {
        self.code.push(Op::new(action, inputs, output));
        match self.code.items.last_mut() {
            Some(crate::compiler::Item::Op(op)) => op,
            _ => unreachable!("an operation was appended"),
        }
    }

    fn result(&mut self, action: Action, inputs: [Input; 2]) -> Variable {
        let variable = self.code.variable();
        self.push(action, inputs, Output::Variable(variable));
        variable
    }

    fn of_variables(&mut self, action: Action, a: Variable, b: Variable) -> Variable {
        self.result(action, [Input::Variable(a), Input::Variable(b)])
    }

    pub(super) fn xor(&mut self, a: Variable, b: Variable) -> Variable {
        self.of_variables(Action::Add(AddOp::Xor), a, b)
    }

    pub(super) fn and(&mut self, a: Variable, b: Variable) -> Variable {
        self.of_variables(Action::Add(AddOp::And), a, b)
    }

    /// Computes the XOR of two values without a common bit, as a sum.
    pub(super) fn sum(&mut self, a: Variable, b: Variable) -> Variable {
        self.of_variables(SUM, a, b)
    }

    /// Computes the XOR of two values, as a difference. All bits of `b` must be set in `a`.
    pub(super) fn difference(&mut self, a: Variable, b: Variable) -> Variable {
        self.of_variables(DIFFERENCE, a, b)
    }

    /// The product of bytes, interpreted as fractions.
    pub(super) fn product(&mut self, a: Variable, b: Variable) -> Variable {
        self.of_variables(Action::Mul(MulOp::V8muld), a, b)
    }

    /// An operation of the add ALU on a variable and a small number.
    pub(super) fn with_small(&mut self, op: AddOp, a: Variable, number: u32) -> Variable {
        self.result(Action::Add(op), [Input::Variable(a), small(number)])
    }

    pub(super) fn add_op(&mut self, op: AddOp, a: Variable, b: Variable) -> Variable {
        self.of_variables(Action::Add(op), a, b)
    }

    pub(super) fn constant(&mut self, value: u32) -> Variable {
        self.result(Action::Constant(value), [Input::Received; 2])
    }

    /// Assigns a variable.
    pub(super) fn set(&mut self, to: Variable, from: Variable) {
        self.push(Action::Move, [Input::Variable(from); 2], Output::Variable(to));
    }

    /// Makes the last operation write to a variable that already exists.
    pub(super) fn last_to(&mut self, to: Variable) {
        if let Some(crate::compiler::Item::Op(op)) = self.code.items.last_mut() {
            op.output = Output::Variable(to);
        }
    }

    /// Rotates within the quads: element i of a quad moves to (i + n) mod 4.
    pub(super) fn quad(&mut self, a: Variable, by: u8) -> Variable {
        let variable = self.code.variable();
        let op = self.push(Action::Move, [Input::Variable(a); 2], Output::Variable(variable));
        op.rotation = Some(Rotation::Quad(by));
        variable
    }

    pub(super) fn moved(&mut self, a: Variable) -> Variable {
        self.result(Action::Move, [Input::Variable(a); 2])
    }

    /// In the elements that meet a condition, replaces the variable `to` by the rotated variable `from`: element i moves to i +
    /// n.
    pub(super) fn rotate_if(&mut self, to: Variable, from: Variable, by: u8, condition: Condition) {
        let op = self.push(Action::Move, [Input::Variable(from); 2], Output::Variable(to));
        (op.rotation, op.condition) = (Some(Rotation::Full(by)), condition);
    }

    /// In the elements whose flags meet the condition, complements the variable.
    pub(super) fn complement_if(&mut self, a: Variable, condition: Condition) {
        let op = self.push(DIFFERENCE, [small(u32::MAX), Input::Variable(a)], Output::Variable(a));
        op.condition = condition;
    }

    /// A vector in which each element has its own number, from 0 to 15.
    pub(super) fn element(&mut self) -> Variable {
        self.result(Action::Move, [Input::Read(Read::Element); 2])
    }

    /// In the elements whose flags meet the condition, copies `from` to `to`.
    pub(super) fn set_if(&mut self, to: Variable, from: Variable, condition: Condition) {
        self.push(Action::Move, [Input::Variable(from); 2], Output::Variable(to)).condition = condition;
    }

    /// In the elements whose flags meet the condition, sets the variable to a small number.
    pub(super) fn set_small_if(&mut self, a: Variable, number: u32, condition: Condition) {
        self.push(Action::Move, [small(number); 2], Output::Variable(a)).condition = condition;
    }

    /// In the elements whose flags meet the condition, XORs `b` into `a`.
    pub(super) fn xor_if(&mut self, a: Variable, b: Variable, condition: Condition) {
        let inputs = [Input::Variable(a), Input::Variable(b)];
        self.push(Action::Add(AddOp::Xor), inputs, Output::Variable(a)).condition = condition;
    }

    /// Sets the flags from the result of an operation with a small number.
    pub(super) fn flags(&mut self, op: AddOp, input: Input, number: u32) {
        self.push(Action::Add(op), [input, small(number)], Output::Nothing).sets_flags = true;
    }

    /// Subtracts one and sets the flags.
    pub(super) fn count_down(&mut self, a: Variable) {
        let op = self.push(Action::Add(AddOp::Sub), [Input::Variable(a), small(1)], Output::Variable(a));
        op.sets_flags = true;
    }

    pub(super) fn write(&mut self, to: Write, from: Variable) {
        self.push(Action::Move, [Input::Variable(from); 2], Output::Write(to));
    }

    /// Waits for a DMA transfer. If a variable is given, the wait follows the computation of this variable.
    pub(super) fn wait_after(&mut self, read: Read, variable: Option<Variable>) {
        match variable {
            Some(variable) => {
                let inputs = [Input::Variable(variable), Input::Read(read)];
                self.push(Action::Add(AddOp::Or), inputs, Output::Nothing)
            }
            None => self.push(Action::Move, [Input::Read(read); 2], Output::Nothing),
        };
    }

    pub(super) fn receive(&mut self) {
        self.push(Action::Receive, [Input::Received; 2], Output::Nothing);
    }

    /// The XOR of a variable with the received vector.
    pub(super) fn xor_received(&mut self, a: Variable) -> Variable {
        self.result(Action::Add(AddOp::Xor), [Input::Variable(a), Input::Received])
    }

    /// Writes one byte of each element to the VPM, XORed with the next vector of the VPM.
    pub(super) fn xor_byte_to_vpm(&mut self, a: Variable, byte: u8) {
        let inputs = [Input::Variable(a), Input::Read(Read::Vpm)];
        self.push(Action::Add(AddOp::Xor), inputs, Output::Write(Write::Vpm)).unpack = 4 + byte;
    }

    /// Writes one byte of each element to the VPM.
    pub(super) fn byte_to_vpm(&mut self, a: Variable, byte: u8) {
        self.push(Action::Move, [Input::Variable(a); 2], Output::Write(Write::Vpm)).unpack = 4 + byte;
    }

    /// Replaces one byte of each element by the next vector of the VPM.
    pub(super) fn byte_from_vpm(&mut self, a: Variable, byte: u8) {
        self.push(Action::Move, [Input::Read(Read::Vpm); 2], Output::Variable(a)).pack = 4 + byte;
    }
}

pub(super) fn small(number: u32) -> Input {
    Input::small(number).expect("a small immediate")
}
