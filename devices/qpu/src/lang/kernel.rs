//! Kernels, and their statements.

use std::convert::Infallible;

use super::condition::{Boolean, BooleanTree, Test, branch_condition, negated, value_with};
use super::expression::{Expression, Float, Int, Node, Tree, Var};
use crate::compiler::{Action, Code, Input, Op, Output, Read, Rotation, Special, Variable, Write};
use crate::isa::{BranchCondition, Condition, MulOp};

/// The semaphore with which the QPUs signal their end to the first QPU.
const END_SEMAPHORE: u8 = 15;

/// The row of the VPM for vectors that are stored or loaded. A vector is a column of the VPM, and the number of the column is
/// the number of the QPU.
const STORE_ROW: u32 = 32;
const LOAD_ROW: u32 = 0;

/// The setups of the VPM and of DMA for stores or loads. They are computed once, at the start of the program.
#[derive(Debug, Clone, Copy)]
struct Setups {
    stride: Variable,
    dma: Variable,
    /// For loads: the setup by which a vector is read from the VPM.
    vpm: Option<Variable>,
}

/// A program under construction.
#[derive(Debug)]
pub struct Kernel {
    code: Code,
    me: Variable,
    qpus: Variable,
    stores: Option<Setups>,
    loads: Option<Setups>,
    /// The variable and the condition of the enclosing [`Kernel::where_`].
    mask: Option<(Variable, Condition)>,
}

impl Default for Kernel {
    fn default() -> Kernel {
        Kernel::new()
    }
}

impl Kernel {
    /// Starts a program. Its first two uniforms are the number of the QPU in the run and the number of QPUs. [`super::uniform`]
    /// reads the uniforms after these two.
    pub fn new() -> Kernel {
        let mut code = Code::new();
        let (me, qpus) = (code.variable(), code.variable());
        for variable in [me, qpus] {
            let input = Input::Read(Read::Uniform);
            code.push(Op::new(Action::Move, [input; 2], Output::Variable(variable)));
        }
        Kernel { code, me, qpus, stores: None, loads: None, mask: None }
    }

    /// The number of the QPU in the run, from 0.
    pub fn me(&self) -> Var<Int> {
        Var::of(self.me)
    }

    /// The number of QPUs of the run.
    pub fn qpus(&self) -> Var<Int> {
        Var::of(self.qpus)
    }

    /// Returns the operations of the program, so that a caller can append its own operations.
    pub fn code(&mut self) -> &mut Code {
        &mut self.code
    }

    /// Creates a variable, and assigns a value to it.
    pub fn var<T>(&mut self, value: impl Into<Expression<T>>) -> Var<T> {
        let variable = self.code.variable();
        self.assign_tree(Output::Variable(variable), &value.into().tree, Condition::Always);
        Var::of(variable)
    }

    /// Creates a variable without a value. A value must be assigned before the variable is read.
    pub fn unset<T>(&mut self) -> Var<T> {
        Var::of(self.code.variable())
    }

    /// Assigns a value. Within [`Kernel::where_`], assigns it only in the elements that meet the condition.
    pub fn set<T>(&mut self, variable: Var<T>, value: impl Into<Expression<T>>) {
        let condition = self.mask.map_or(Condition::Always, |(_, condition)| condition);
        self.assign_tree(Output::Variable(variable.variable), &value.into().tree, condition);
    }

    /// Assigns a value to one byte (0 to 3) of a variable, and keeps all other bytes.
    pub fn set_byte(&mut self, variable: Var<Int>, number: u8, value: impl Into<Expression<Int>>) {
        let input = self.simple(&value.into().tree);
        let mut op = Op::new(Action::Move, [input; 2], Output::Variable(variable.variable));
        op.pack = 4 + (number & 3);
        op.condition = self.mask.map_or(Condition::Always, |(_, condition)| condition);
        self.code.push(op);
    }

    /// Executes assignments for the elements that meet a condition. The body may contain only assignments and further calls of
    /// `where_`.
    pub fn where_(&mut self, condition: Boolean, body: impl FnOnce(&mut Kernel)) {
        self.where_else(condition, body, |_| ());
    }

    /// Executes the assignments of `then` for the elements that meet a condition, and those of `otherwise` for all other
    /// elements.
    pub fn where_else(
        &mut self,
        condition: Boolean,
        then: impl FnOnce(&mut Kernel),
        otherwise: impl FnOnce(&mut Kernel),
    ) {
        let outer = self.mask;
        let (variable, chosen) = self.boolean(&condition.0);
        match outer {
            None => {
                self.mask = Some((variable, chosen));
                then(self);
                self.mask = Some((variable, negated(chosen)));
                otherwise(self);
            }
            Some(outer) => {
                self.mask = Some(self.both(outer, (variable, chosen)));
                then(self);
                self.set_flags(variable);
                self.mask = Some(self.both(outer, (variable, negated(chosen))));
                otherwise(self);
                self.set_flags(outer.0);
            }
        }
        self.mask = outer;
    }

    /// Repeats statements while a test of all elements is true.
    pub fn while_(&mut self, test: &Test, body: impl FnOnce(&mut Kernel)) {
        let test = |_: &mut Kernel| Ok::<_, Infallible>(test.clone());
        let Ok(()) = self.try_while(test, |k| {
            body(k);
            Ok(())
        });
    }

    /// Repeats statements while a test of all elements is true. `test` may append operations, which are executed before each
    /// iteration: they are appended once before the loop and once at its end.
    ///
    /// # Errors
    /// The errors of `test` and of `body`. After an error, the program is incomplete.
    pub fn try_while<E>(
        &mut self,
        mut test: impl FnMut(&mut Kernel) -> Result<Test, E>,
        body: impl FnOnce(&mut Kernel) -> Result<(), E>,
    ) -> Result<(), E> {
        let (start, end) = (self.code.label(), self.code.label());
        let first = test(self)?;
        let condition = self.test(&first);
        self.code.branch(opposite(condition), end);
        self.code.place(start);
        body(self)?;
        let next = test(self)?;
        let condition = self.test(&next);
        self.code.branch(condition, start);
        self.code.place(end);
        Ok(())
    }

    /// Repeats statements with a loop variable, as long as the variable is less than `limit`. The variable starts at `start`
    /// and is increased by a step after each iteration. Its values must be the same in all elements.
    pub fn for_(
        &mut self,
        start: impl Into<Expression<Int>>,
        limit: impl Into<Expression<Int>>,
        step: impl Into<Expression<Int>>,
        body: impl FnOnce(&mut Kernel, Var<Int>),
    ) {
        let (limit, step) = (limit.into(), step.into());
        let counter = self.var(start);
        self.while_(&counter.is_less(limit).any(), |k| {
            body(k, counter);
            k.set(counter, counter + step);
        });
    }

    /// Repeats statements with a loop variable, as long as the variable is greater than `limit`. The variable starts at `start`
    /// and is decreased by a step after each iteration.
    pub fn for_down(
        &mut self,
        start: impl Into<Expression<Int>>,
        limit: impl Into<Expression<Int>>,
        step: impl Into<Expression<Int>>,
        body: impl FnOnce(&mut Kernel, Var<Int>),
    ) {
        let (limit, step) = (limit.into(), step.into());
        let counter = self.var(start);
        self.while_(&counter.is_greater(limit).any(), |k| {
            body(k, counter);
            k.set(counter, counter - step);
        });
    }

    /// Executes statements if a test of all elements is true.
    pub fn if_(&mut self, test: &Test, body: impl FnOnce(&mut Kernel)) {
        let end = self.code.label();
        let condition = self.test(test);
        self.code.branch(opposite(condition), end);
        body(self);
        self.code.place(end);
    }

    /// Executes statements if a test of all elements is true, and other statements if it is false.
    pub fn if_else(
        &mut self,
        test: &Test,
        then: impl FnOnce(&mut Kernel),
        otherwise: impl FnOnce(&mut Kernel),
    ) {
        let end = self.code.label();
        self.if_(test, |k| {
            then(k);
            k.code.branch(BranchCondition::Always, end);
        });
        otherwise(self);
        self.code.place(end);
    }

    /// The result of a special function. The hardware computes an approximation.
    pub fn special(&mut self, function: Special, value: impl Into<Expression<Float>>) -> Var<Float> {
        let output = Output::Write(Write::Special(function));
        self.assign_tree(output, &value.into().tree, Condition::Always);
        let result = self.unset::<Float>();
        self.code.push(Op::new(Action::Move, [Input::Received; 2], Output::Variable(result.variable)));
        result
    }

    /// Shows a value on the simulator: see [`crate::sim::Observer::printed`]. On a board, the instruction has no effect.
    pub fn print<T>(&mut self, value: impl Into<Expression<T>>) {
        let input = self.in_variable(&value.into().tree);
        self.code.push(Op::new(Action::Mul(MulOp::V8max), [input; 2], Output::Nothing));
    }

    /// Requests the words at the addresses of all elements. At most four requests may be outstanding.
    pub fn gather(&mut self, addresses: impl Into<Expression<Int>>) {
        self.assign_tree(Output::Write(Write::Tmu), &addresses.into().tree, Condition::Always);
    }

    /// Waits for the words of the oldest request, and assigns them to a variable.
    pub fn receive_into<T>(&mut self, variable: Var<T>) {
        let receive = Op::new(Action::Receive, [Input::Received; 2], Output::Nothing);
        self.code.push(receive);
        self.code.push(Op::new(Action::Move, [Input::Received; 2], Output::Variable(variable.variable)));
    }

    /// Waits for the words of the oldest request, and returns them.
    pub fn receive<T>(&mut self) -> Var<T> {
        let variable = self.unset();
        self.receive_into(variable);
        variable
    }

    /// Stores all elements at an address, after the last store has ended. Only the address in element 0 is used.
    pub fn store<T>(&mut self, value: impl Into<Expression<T>>, address: impl Into<Expression<Int>>) {
        let value = self.in_variable(&value.into().tree);
        let address = self.in_variable(&address.into().tree);
        self.wait_for_stores();
        self.start_store(value, address);
    }

    /// As [`Kernel::store`], but also waits until this store has ended.
    pub fn store_and_wait<T>(
        &mut self,
        value: impl Into<Expression<T>>,
        address: impl Into<Expression<Int>>,
    ) {
        let value = self.in_variable(&value.into().tree);
        let address = self.in_variable(&address.into().tree);
        self.start_store(value, address);
        self.wait_for_stores();
    }

    fn start_store(&mut self, value: Input, address: Input) {
        let setups = match self.stores {
            Some(setups) => setups,
            None => {
                let (stride, dma) = (self.code.variable(), self.code.variable());
                *self.stores.insert(Setups { stride, dma, vpm: None })
            }
        };
        self.write(Write::Vpm, value);
        self.write(Write::StoreSetup, Input::Variable(setups.stride));
        self.write(Write::StoreSetup, Input::Variable(setups.dma));
        self.write(Write::StoreAddress, address);
    }

    /// Waits until the last store has ended.
    pub fn wait_for_stores(&mut self) {
        self.code.push(Op::new(Action::Move, [Input::Read(Read::StoreWait); 2], Output::Nothing));
    }

    /// Loads all elements from an address by DMA, and waits until the load has ended. Only the address in element 0 is used.
    pub fn load<T>(&mut self, address: impl Into<Expression<Int>>) -> Var<T> {
        let address = self.in_variable(&address.into().tree);
        let setups = match self.loads {
            Some(setups) => setups,
            None => {
                let (stride, dma, vpm) = (self.code.variable(), self.code.variable(), self.code.variable());
                *self.loads.insert(Setups { stride, dma, vpm: Some(vpm) })
            }
        };
        self.write(Write::LoadSetup, Input::Variable(setups.stride));
        self.write(Write::LoadSetup, Input::Variable(setups.dma));
        self.write(Write::LoadAddress, address);
        self.code.push(Op::new(Action::Move, [Input::Read(Read::LoadWait); 2], Output::Nothing));
        if let Some(vpm) = setups.vpm {
            self.write(Write::LoadSetup, Input::Variable(vpm));
        }
        let variable = self.code.variable();
        let input = Input::Read(Read::Vpm);
        self.code.push(Op::new(Action::Move, [input; 2], Output::Variable(variable)));
        Var::of(variable)
    }

    /// Ends the program. It waits for its stores, and interrupts the host after all QPUs have reached this statement.
    pub fn finish(mut self) -> Code {
        if self.stores.is_some() {
            self.wait_for_stores();
        }
        let (others, end) = (self.code.label(), self.code.label());
        let me = Input::Variable(self.me);
        self.code.push(Op { sets_flags: true, ..Op::new(Action::Move, [me; 2], Output::Nothing) });
        self.code.branch(BranchCondition::AnyNotZero, others);
        // The first QPU waits for the end of all other QPUs.
        let left = self.var(self.qpus() - 1);
        self.while_(&left.is_greater(0).any(), |k| {
            k.semaphore(END_SEMAPHORE, true);
            k.set(left, left - 1);
        });
        let one = Input::small(1).expect("a small immediate");
        self.write(Write::Interrupt, one);
        self.code.branch(BranchCondition::Always, end);
        self.code.place(others);
        self.semaphore(END_SEMAPHORE, false);
        self.code.place(end);
        self.code.items.push(crate::compiler::Item::End);
        self.with_setups()
    }

    fn semaphore(&mut self, number: u8, decrements: bool) {
        let action = Action::Semaphore { number, decrements };
        self.code.push(Op::new(action, [Input::Received; 2], Output::Nothing));
    }

    /// Returns the program with the setups that it uses at its start.
    fn with_setups(mut self) -> Code {
        let body = std::mem::take(&mut self.code.items);
        if let Some(Setups { stride, dma, .. }) = self.stores {
            self.constant(stride, 0xc001_0000);
            let id = self.var(super::qpu());
            // A store has 16 rows of one word, because a vector is a column of the VPM.
            let shifted = self.var(id << 3);
            let setup = self.var(shifted | (0x8801_4000 | STORE_ROW << 7));
            self.code.push(Op::new(
                Action::Move,
                [Input::Variable(setup.variable); 2],
                Output::Variable(dma),
            ));
            let vpm = self.in_variable(&(id | (0x0010_0200 | STORE_ROW)).tree);
            self.write(Write::StoreSetup, vpm);
        }
        if let Some(Setups { stride, dma, vpm: Some(vpm) }) = self.loads {
            self.constant(stride, 0x9000_0004);
            let id = self.var(super::qpu());
            for (variable, word) in [(dma, 0x8010_1800 | LOAD_ROW << 4), (vpm, 0x0010_0200 | LOAD_ROW)] {
                self.assign_tree(Output::Variable(variable), &(id | word).tree, Condition::Always);
            }
        }
        self.code.items.extend(body);
        self.code
    }

    fn constant(&mut self, variable: Variable, value: u32) {
        self.code.push(Op::new(Action::Constant(value), [Input::Received; 2], Output::Variable(variable)));
    }

    /// Writes a register that is not a variable, for programs that set up the VPM and DMA themselves.
    pub fn write_register<T>(&mut self, register: Write, value: Var<T>) {
        self.write(register, Input::Variable(value.variable));
    }

    /// Writes an expression to a register that is not a variable.
    pub fn write_expression<T>(&mut self, register: Write, value: impl Into<Expression<T>>) {
        self.assign_tree(Output::Write(register), &value.into().tree, Condition::Always);
    }

    fn write(&mut self, register: Write, input: Input) {
        self.code.push(Op::new(Action::Move, [input; 2], Output::Write(register)));
    }

    /// Evaluates a test. Returns the condition of a branch that is taken if the test is true.
    fn test(&mut self, test: &Test) -> BranchCondition {
        let (_, condition) = self.boolean(&test.boolean.0);
        branch_condition(condition, test.all)
    }

    /// Evaluates a condition of elements. The flags are set from the returned variable, and the returned condition selects
    /// the elements.
    fn boolean(&mut self, tree: &BooleanTree) -> (Variable, Condition) {
        match tree {
            BooleanTree::Compare(comparison, subtraction, both) => {
                let inputs = self.simple_pair(&both[0], &both[1]);
                let variable = self.code.variable();
                let action = Action::Add(*subtraction);
                let op = Op::new(action, inputs, Output::Variable(variable));
                self.code.push(Op { sets_flags: true, ..op });
                (variable, comparison.condition())
            }
            BooleanTree::Not(inner) => {
                let (variable, condition) = self.boolean(inner);
                (variable, negated(condition))
            }
            BooleanTree::Or(both) => {
                let left = self.boolean(&both[0]);
                let right = self.boolean(&both[1]);
                self.either(left, right)
            }
        }
    }

    /// Changes the variable of `left` so that the condition of `left` also holds in the elements that meet the condition of
    /// `right`, and returns `left`. Before the call, the flags must have been set from the variable of `right`. After the call,
    /// they are set from the variable of `left`.
    fn either(&mut self, left: (Variable, Condition), right: (Variable, Condition)) -> (Variable, Condition) {
        let value = Action::Constant(value_with(left.1));
        let op = Op::new(value, [Input::Received; 2], Output::Variable(left.0));
        self.code.push(Op { condition: right.1, ..op });
        self.set_flags(left.0);
        left
    }

    /// Returns a new variable and the condition for the elements that meet both conditions. Before the call, the flags must
    /// have been set from the variable of `right`. After the call, they are set from the new variable.
    fn both(&mut self, left: (Variable, Condition), right: (Variable, Condition)) -> (Variable, Condition) {
        let copy = self.code.variable();
        self.code.push(Op::new(Action::Move, [Input::Variable(left.0); 2], Output::Variable(copy)));
        let (variable, condition) = self.either((copy, negated(left.1)), (right.0, negated(right.1)));
        (variable, negated(condition))
    }

    fn set_flags(&mut self, variable: Variable) {
        let op = Op::new(Action::Move, [Input::Variable(variable); 2], Output::Nothing);
        self.code.push(Op { sets_flags: true, ..op });
    }

    /// Appends the operations of an expression. The last operation writes the output.
    fn assign_tree(&mut self, output: Output, tree: &Tree, condition: Condition) {
        let op = match tree {
            Tree::Constant(value) => Op::new(Action::Constant(*value), [Input::Received; 2], output),
            Tree::Variable(variable) => Op::new(Action::Move, [Input::Variable(*variable); 2], output),
            Tree::Read(read) => Op::new(Action::Move, [Input::Read(*read); 2], output),
            Tree::Unpack(variable, mode) => {
                Op { unpack: *mode, ..Op::new(Action::Move, [Input::Variable(*variable); 2], output) }
            }
            Tree::Rotate(inner, by) => {
                let input = self.in_variable(inner);
                Op { rotation: Some(Rotation::Full(*by)), ..Op::new(Action::Move, [input; 2], output) }
            }
            Tree::RotateInQuads(inner, by) => {
                let (input, unpack) = match &**inner {
                    Tree::Unpack(variable, mode) => (Input::Variable(*variable), *mode),
                    other => (self.in_variable(other), 0),
                };
                // A rotation by zero elements is a move.
                let rotation = (*by != 0).then_some(Rotation::Quad(*by));
                Op { rotation, unpack, ..Op::new(Action::Move, [input; 2], output) }
            }
            Tree::Apply(node, both) => {
                let action = match node {
                    Node::Add(op) => Action::Add(*op),
                    Node::Mul(op) => Action::Mul(*op),
                };
                // A part of a variable can only be the first input.
                match &both[0] {
                    Tree::Unpack(variable, mode) => {
                        // A word can read only one register of file A.
                        let right = match &both[1] {
                            element @ Tree::Read(Read::Element) => self.in_variable(element),
                            right => self.simple(right),
                        };
                        Op { unpack: *mode, ..Op::new(action, [Input::Variable(*variable), right], output) }
                    }
                    left => {
                        let inputs = self.simple_pair(left, &both[1]);
                        Op::new(action, inputs, output)
                    }
                }
            }
        };
        self.code.push(Op { condition, ..op });
    }

    /// Returns the inputs of an operation. If both inputs are different small immediates, the first is assigned to a variable.
    fn simple_pair(&mut self, left: &Tree, right: &Tree) -> [Input; 2] {
        let inputs = [self.simple(left), self.simple(right)];
        match inputs {
            [Input::Small(one), Input::Small(other)] if one != other => [self.in_variable(left), inputs[1]],
            // The number of the QPU is read through the same port as a small immediate.
            [Input::Small(_), Input::Read(Read::Qpu)] => [inputs[0], self.in_variable(right)],
            [Input::Read(Read::Qpu), Input::Small(_)] => [self.in_variable(left), inputs[1]],
            _ => inputs,
        }
    }

    /// Converts an expression to an input: a variable, a small immediate or a register that is not a variable.
    fn simple(&mut self, tree: &Tree) -> Input {
        match tree {
            Tree::Constant(value) => Input::small(*value).unwrap_or_else(|| self.in_variable(tree)),
            Tree::Read(read @ (Read::Element | Read::Qpu)) => Input::Read(*read),
            _ => self.in_variable(tree),
        }
    }

    fn in_variable(&mut self, tree: &Tree) -> Input {
        if let Tree::Variable(variable) = tree {
            return Input::Variable(*variable);
        }
        let variable = self.code.variable();
        self.assign_tree(Output::Variable(variable), tree, Condition::Always);
        Input::Variable(variable)
    }
}

/// Returns the condition of a branch that is taken exactly if a branch with `condition` is not taken.
fn opposite(condition: BranchCondition) -> BranchCondition {
    use BranchCondition::*;
    match condition {
        AllZero => AnyNotZero,
        AnyNotZero => AllZero,
        AllNotZero => AnyZero,
        AnyZero => AllNotZero,
        AllNegative => AnyNotNegative,
        AnyNotNegative => AllNegative,
        AllNotNegative => AnyNegative,
        AnyNegative => AllNotNegative,
        AllCarry => AnyNoCarry,
        AnyNoCarry => AllCarry,
        AllNoCarry => AnyCarry,
        AnyCarry => AllNoCarry,
        Always => unreachable!("tests have conditions"),
    }
}
