//! Programs before registers are allocated: operations on variables, labels and branches.

use crate::isa::{AddOp, BranchCondition, Condition, MulOp, SmallImmediate};

/// A vector of 16 elements that the compiler keeps in a register.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Variable(pub(super) u32);

/// A place in a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Label(pub(super) u32);

/// A register that is read and is not a variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Read {
    /// The next uniform.
    Uniform,
    /// The numbers of the elements.
    Element,
    /// The number of the QPU.
    Qpu,
    /// The next vector of the VPM.
    Vpm,
    /// Waits for the DMA load of this QPU.
    LoadWait,
    /// Waits for the DMA store of this QPU.
    StoreWait,
    /// Locks the mutex.
    Mutex,
}

/// A register that is written and is not a variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Write {
    /// Addresses for texture unit 0.
    Tmu,
    /// A vector for the VPM.
    Vpm,
    /// How vectors of the VPM are read, or how DMA loads.
    LoadSetup,
    /// How vectors of the VPM are written, or how DMA stores.
    StoreSetup,
    /// Starts a DMA load.
    LoadAddress,
    /// Starts a DMA store.
    StoreAddress,
    /// Interrupts the host.
    Interrupt,
    /// Unlocks the mutex.
    Mutex,
}

/// An input of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Input {
    /// A variable.
    Variable(Variable),
    /// A small immediate.
    Small(SmallImmediate),
    /// Another register.
    Read(Read),
    /// What the operation before it has received.
    Received,
}

impl Input {
    /// The value as a small immediate, from -16 to 15, or 1, 2, 4, ... 128 or 1/256, ... 1/2 as bits of a float.
    pub fn small(value: u32) -> Option<Input> {
        SmallImmediate::Value(value).code().map(|_| Input::Small(SmallImmediate::Value(value)))
    }
}

/// Where the result of an operation is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Output {
    /// A variable.
    Variable(Variable),
    /// Another register.
    Write(Write),
    /// Nowhere: only flags are set, or something is waited for.
    Nothing,
}

/// What an operation does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Action {
    /// An operation of the add ALU.
    Add(AddOp),
    /// An operation of the mul ALU.
    Mul(MulOp),
    /// An operation that both ALUs have, or whose results are the same for the inputs that it gets.
    Either(AddOp, MulOp),
    /// Moves the first input. Either ALU can do that.
    Move,
    /// A constant.
    Constant(u32),
    /// Increments a semaphore, or decrements it once it is not zero.
    Semaphore {
        /// Its number, from 0 to 15.
        number: u8,
        /// True if it is decremented.
        decrements: bool,
    },
    /// Waits for the next result of texture unit 0, which the next operation takes as [`Input::Received`].
    Receive,
}

/// How the result of an operation of the mul ALU is rotated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Rotation {
    /// Element i moves to (i + n) mod 16.
    Full(u8),
    /// Within each quad, element i moves to (i + n) mod 4.
    Quad(u8),
}

/// An operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Op {
    /// What it does.
    pub action: Action,
    /// Its inputs; those that the action does not have are ignored.
    pub inputs: [Input; 2],
    /// Where the result is written.
    pub output: Output,
    /// The elements for which the result is written.
    pub condition: Condition,
    /// True if the flags are set.
    pub sets_flags: bool,
    /// How the result is rotated; only for moves.
    pub rotation: Option<Rotation>,
    /// How the first input, which is a variable, is unpacked, from 0 (none) to 7.
    pub unpack: u8,
    /// How the output, which is a variable, is packed, from 0 (none) to 15.
    pub pack: u8,
}

impl Op {
    /// An operation with two inputs.
    pub fn new(action: Action, inputs: [Input; 2], output: Output) -> Op {
        Op {
            action,
            inputs,
            output,
            condition: Condition::Always,
            sets_flags: false,
            rotation: None,
            unpack: 0,
            pack: 0,
        }
    }

    /// The inputs that the action has.
    pub fn used_inputs(&self) -> &[Input] {
        let count = match self.action {
            Action::Add(op) => op.inputs(),
            Action::Mul(op) => op.inputs(),
            Action::Either(op, _) => op.inputs(),
            Action::Move => 1,
            Action::Constant(_) | Action::Receive | Action::Semaphore { .. } => 0,
        };
        &self.inputs[..count]
    }

    /// The variables that are read. An output that is only written in part counts as read.
    pub fn reads(&self) -> impl Iterator<Item = Variable> {
        let inputs = self.used_inputs().iter().filter_map(|input| match input {
            Input::Variable(variable) => Some(*variable),
            _ => None,
        });
        let kept = self.writes().filter(|_| self.is_partial());
        inputs.chain(kept)
    }

    /// The variable that is written.
    pub fn writes(&self) -> Option<Variable> {
        match self.output {
            Output::Variable(variable) => Some(variable),
            _ => None,
        }
    }

    /// True if the output is only written in part.
    pub fn is_partial(&self) -> bool {
        self.condition != Condition::Always || self.pack != 0
    }
}

/// A part of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Item {
    /// An operation.
    Op(Op),
    /// A place that is branched to.
    Label(Label),
    /// A branch.
    Branch {
        /// Which elements must have which flag.
        condition: BranchCondition,
        /// Where it goes.
        target: Label,
    },
    /// A branch that writes its return address.
    Call {
        /// Where it goes.
        target: Label,
        /// The return address.
        link: Variable,
    },
    /// A branch to a return address.
    Return(Variable),
    /// The end of the program.
    End,
}

/// A program.
#[derive(Debug, Clone, Default)]
pub struct Code {
    /// Its parts, in order.
    pub items: Vec<Item>,
    variables: u32,
    labels: u32,
}

impl Code {
    /// A program without operations.
    pub fn new() -> Code {
        Code::default()
    }

    /// A new variable.
    pub fn variable(&mut self) -> Variable {
        self.variables += 1;
        Variable(self.variables - 1)
    }

    /// A new label, which is to be placed once by [`Code::place`].
    pub fn label(&mut self) -> Label {
        self.labels += 1;
        Label(self.labels - 1)
    }

    /// Appends an operation.
    pub fn push(&mut self, op: Op) {
        self.items.push(Item::Op(op));
    }

    /// Places a label.
    pub fn place(&mut self, label: Label) {
        self.items.push(Item::Label(label));
    }

    /// Appends a branch.
    pub fn branch(&mut self, condition: BranchCondition, target: Label) {
        self.items.push(Item::Branch { condition, target });
    }

    /// The number of variables.
    pub fn variables(&self) -> usize {
        self.variables as usize
    }

    /// The number of labels.
    pub fn labels(&self) -> usize {
        self.labels as usize
    }
}
