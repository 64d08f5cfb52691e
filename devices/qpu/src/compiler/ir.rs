//! Programs before registers are allocated: operations on variables, labels and branches.

use crate::isa::{AddOp, BranchCondition, Condition, MulOp, SmallImmediate};

/// A vector of 16 elements that the compiler keeps in a register.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Variable(pub(super) u32);

/// A position in a program, which is the target of branches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Label(pub(super) u32);

/// A register that is read and is not a variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Read {
    /// The next uniform of this QPU.
    Uniform,
    /// The number of each element.
    Element,
    /// The number of the QPU on the chip, from 0 to 11.
    Qpu,
    /// The next vector of the VPM.
    Vpm,
    /// Waits for the DMA load of this QPU.
    LoadWait,
    /// Waits for the DMA store of this QPU.
    StoreWait,
    /// Waits for the mutex, and locks it.
    Mutex,
}

/// A register that is written and is not a variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Write {
    /// Addresses for texture unit 0.
    Tmu,
    /// A vector for the VPM.
    Vpm,
    /// The setup of reads of the VPM, or of a DMA load.
    LoadSetup,
    /// The setup of writes to the VPM, or of a DMA store.
    StoreSetup,
    /// Starts a DMA load.
    LoadAddress,
    /// Starts a DMA store.
    StoreAddress,
    /// Interrupts the host.
    Interrupt,
    /// Unlocks the mutex.
    Mutex,
    /// The argument of a special function. Operations after this one read the result as [`Input::Received`], until another
    /// operation receives a vector.
    Special(Special),
}

/// The special functions, which work on floats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Special {
    /// The reciprocal.
    Reciprocal,
    /// The reciprocal of the square root.
    ReciprocalSquareRoot,
    /// The power of two.
    Exponent,
    /// The logarithm to base two.
    Logarithm,
}

/// An input of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Input {
    /// A variable.
    Variable(Variable),
    /// A small immediate.
    Small(SmallImmediate),
    /// A register that is not a variable.
    Read(Read),
    /// The last vector that an operation has received.
    Received,
}

impl Input {
    /// Returns the value as a small immediate. There are small immediates for -16 to 15, and for the bits of the floats 1, 2,
    /// 4, ... 128 and 1/256, ... 1/2.
    pub fn small(value: u32) -> Option<Input> {
        SmallImmediate::Value(value).code().map(|_| Input::Small(SmallImmediate::Value(value)))
    }
}

/// The destination of the result of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Output {
    /// A variable.
    Variable(Variable),
    /// A register that is not a variable.
    Write(Write),
    /// No destination: the operation only sets flags, or waits.
    Nothing,
}

/// The kind of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Action {
    /// An operation of the add ALU.
    Add(AddOp),
    /// An operation of the mul ALU.
    Mul(MulOp),
    /// An operation that both ALUs have, or two operations that give the same results for these inputs.
    Either(AddOp, MulOp),
    /// Moves the first input. Either ALU can execute a move.
    Move,
    /// A constant for all elements. The operation has no inputs.
    Constant(u32),
    /// Increments a semaphore, or waits until it is not zero and decrements it.
    Semaphore {
        /// The number of the semaphore, from 0 to 15.
        number: u8,
        /// True if the semaphore is decremented.
        decrements: bool,
    },
    /// Waits for the next result of texture unit 0. The next operation uses the result as [`Input::Received`].
    Receive,
}

/// The rotation of the result of an operation of the mul ALU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Rotation {
    /// Element i moves to (i + n) mod 16.
    Full(u8),
    /// Within each quad, element i moves to (i + n) mod 4.
    Quad(u8),
}

/// An operation of an ALU, or another instruction that is not a branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Op {
    /// The kind of the operation.
    pub action: Action,
    /// The inputs. Inputs that this kind of operation does not have are ignored.
    pub inputs: [Input; 2],
    /// The destination of the result.
    pub output: Output,
    /// The elements for which the result is written.
    pub condition: Condition,
    /// The flags are set from the result if this field is true.
    pub sets_flags: bool,
    /// The rotation of the result. Only moves can have a rotation.
    pub rotation: Option<Rotation>,
    /// The mode of unpacking of the first input, from 0 (none) to 7. An input that is unpacked must be a variable.
    pub unpack: u8,
    /// The mode of packing of the output, from 0 (none) to 15. An output that is packed must be a variable.
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

    /// The inputs that this kind of operation has.
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

    /// Returns the variables that the operation reads. A variable that the operation overwrites only in part counts as read.
    pub fn reads(&self) -> impl Iterator<Item = Variable> {
        let inputs = self.used_inputs().iter().filter_map(|input| match input {
            Input::Variable(variable) => Some(*variable),
            _ => None,
        });
        let kept = self.writes().filter(|_| self.is_partial());
        inputs.chain(kept)
    }

    /// The variable that the operation writes.
    pub fn writes(&self) -> Option<Variable> {
        match self.output {
            Output::Variable(variable) => Some(variable),
            _ => None,
        }
    }

    /// True if the operation overwrites only a part of its output.
    pub fn is_partial(&self) -> bool {
        self.condition != Condition::Always || self.pack != 0
    }
}

/// An item of a program: an instruction, a label, or the end of the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Item {
    /// An instruction that is not a branch.
    Op(Op),
    /// A label: a target of branches.
    Label(Label),
    /// A branch to a label, which depends on flags.
    Branch {
        /// The flags that elements must have.
        condition: BranchCondition,
        /// The label at which execution continues.
        target: Label,
    },
    /// A branch that writes its return address.
    Call {
        /// The label at which execution continues.
        target: Label,
        /// The variable for the return address.
        link: Variable,
    },
    /// A branch to a return address.
    Return(Variable),
    /// The end of the program.
    End,
}

/// A program before its registers are allocated.
#[derive(Debug, Clone, Default)]
pub struct Code {
    /// The items, in order.
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

    /// Creates a label. [`Code::place`] must be called exactly once for each label.
    pub fn label(&mut self) -> Label {
        self.labels += 1;
        Label(self.labels - 1)
    }

    /// Appends an operation at the end of the program.
    pub fn push(&mut self, op: Op) {
        self.items.push(Item::Op(op));
    }

    /// Places a label at the end of the program, before the next item.
    pub fn place(&mut self, label: Label) {
        self.items.push(Item::Label(label));
    }

    /// Appends a branch at the end of the program.
    pub fn branch(&mut self, condition: BranchCondition, target: Label) {
        self.items.push(Item::Branch { condition, target });
    }

    /// The number of variables that have been created for the program.
    pub fn variables(&self) -> usize {
        self.variables as usize
    }

    /// The number of labels that have been created for the program.
    pub fn labels(&self) -> usize {
        self.labels as usize
    }
}
