//! Converts a syntax tree to a program in the embedded language. Calls of functions are inlined.

use std::cell::RefCell;
use std::collections::HashMap;

use lockstep_qpu::lang::{Float, Int, Kernel, Test, Var, uniform};

use super::lexer::Position;
use super::operators::{self, FUNCTIONS};
use super::tree::{Element, Expression, ExpressionKind, Function, Name, Statement, StatementKind, Type};
use super::value::{Slot, Value};
use super::variables::{Assigned, Branch, Variables};
use super::{Mistake, Print};

/// Maximum number of operations of a program.
const MAX_OPERATIONS: usize = 10_000;

/// Maximum number of statements and expressions of all functions. Each call adds the statements and expressions of its function, even if
/// they produce no operations.
const MAX_STEPS: usize = 500_000;

/// Maximum depth of nested blocks, expressions and calls.
const MAX_DEPTH: usize = 150;

/// The function that the QPUs execute.
const KERNEL: &str = "kernel";

/// The state of the conversion: the functions whose calls are being inlined, and the variables of the innermost of them.
pub(super) struct Generator<'t> {
    functions: &'t HashMap<&'t str, &'t Function>,
    calls: Vec<&'t str>,
    /// The variables of the innermost function.
    variables: Variables<'t>,
    is_in_where: bool,
    depth: usize,
    /// The number of statements and expressions that have been generated.
    steps: usize,
    /// The numbers of the operations at which a new line begins, each with this line.
    pub(super) lines: Vec<(usize, usize)>,
    /// The operations that print, by their indices.
    pub(super) prints: Vec<(usize, Print)>,
}

/// A program, its parameters, the lines of its operations, and the operations that print.
pub(super) struct Generated<'t> {
    pub(super) kernel: Kernel,
    pub(super) parameters: Vec<(Type, &'t Name)>,
    pub(super) lines: Vec<(usize, usize)>,
    pub(super) prints: Vec<(usize, Print)>,
}

/// Generates the program of the function `kernel`, and checks all other functions.
pub(super) fn generate(functions: &[Function]) -> Result<Generated<'_>, Mistake> {
    let mut by_name = HashMap::new();
    for function in functions {
        let Name { text, at } = &function.name;
        if is_of_the_language(text) {
            return Err(at.mistake(format!("`{text}` is a function of the language: choose another name")));
        }
        if by_name.insert(text.as_str(), function).is_some() {
            return Err(at.mistake(format!("the function `{text}` is defined twice: rename one of them")));
        }
    }
    let mut generator = Generator::new(&by_name);
    // A function that is not called is compiled, too, so that its mistakes are found.
    for function in functions.iter().filter(|function| function.name.text != KERNEL) {
        let mut k = Kernel::new();
        let arguments = function.parameters.iter().map(|(kind, _)| Slot::unset(&mut k, *kind)).collect();
        generator.inline(&mut k, function, arguments)?;
    }
    let start = Position { line: 1, column: 1 };
    let Some(main) = by_name.get(KERNEL) else {
        return Err(start.mistake("there is no function `kernel`: add `void kernel(Ptr<Int> data) { ... }`"));
    };
    if main.result.is_some() {
        return Err(main.name.at.mistake("`kernel` has no result: write `void kernel`"));
    }
    let mut k = Kernel::new();
    let mut arguments = Vec::new();
    for (kind, name) in &main.parameters {
        arguments.push(match kind {
            Type::Vector(Element::Int) => Slot::Int(k.var(uniform())),
            Type::Vector(Element::Float) => {
                let word: Var<Int> = k.var(uniform());
                Slot::Float(k.var::<Float>(word.to_float_bits()))
            }
            Type::Vector(Element::Char) => {
                return Err(name.at.mistake("a parameter of `kernel` is Int, Float or a pointer"));
            }
            Type::Pointer(element) => Slot::Pointer(*element, k.var(uniform())),
        });
    }
    (generator.lines, generator.prints) = (Vec::new(), Vec::new());
    generator.inline(&mut k, main, arguments)?;
    check_operations(&mut k, main.name.at)?;
    let parameters = main.parameters.iter().map(|(kind, name)| (*kind, name)).collect();
    let Generator { lines, prints, .. } = generator;
    Ok(Generated { kernel: k, parameters, lines, prints })
}

/// Checks the number of operations so far, and returns it.
fn check_operations(k: &mut Kernel, at: Position) -> Result<usize, Mistake> {
    let operations = k.code().items.len();
    if operations > MAX_OPERATIONS {
        let message = format!(
            "the program has more than {MAX_OPERATIONS} operations after its functions are inlined: use loops"
        );
        return Err(at.mistake(message));
    }
    Ok(operations)
}

fn is_of_the_language(name: &str) -> bool {
    name == "receive" || FUNCTIONS.iter().any(|(function, _)| *function == name)
}

impl<'t> Generator<'t> {
    fn new(functions: &'t HashMap<&'t str, &'t Function>) -> Generator<'t> {
        Generator {
            functions,
            calls: Vec::new(),
            variables: Variables::new(),
            is_in_where: false,
            depth: 0,
            steps: 0,
            lines: Vec::new(),
            prints: Vec::new(),
        }
    }

    /// Counts a statement or an expression.
    fn count(&mut self, at: Position) -> Result<(), Mistake> {
        self.steps += 1;
        if self.steps > MAX_STEPS {
            let message = format!(
                "the functions have more than {MAX_STEPS} statements and expressions after their calls are inlined: use loops, \
                 or remove functions"
            );
            return Err(at.mistake(message));
        }
        Ok(())
    }

    /// Generates a part of the text that can be nested in another part. Refuses text that is nested too deeply.
    fn nested<T>(
        &mut self,
        at: Position,
        part: impl FnOnce(&mut Self) -> Result<T, Mistake>,
    ) -> Result<T, Mistake> {
        if self.depth == MAX_DEPTH {
            let message =
                format!("this is nested too deeply: at most {MAX_DEPTH} blocks, expressions and calls");
            return Err(at.mistake(message));
        }
        self.count(at)?;
        self.depth += 1;
        let result = part(self);
        self.depth -= 1;
        result
    }

    /// Appends the body of a function, and returns its result.
    fn inline(
        &mut self,
        k: &mut Kernel,
        function: &'t Function,
        arguments: Vec<Slot>,
    ) -> Result<Option<Value>, Mistake> {
        let mut variables = Variables::new();
        for ((_, name), slot) in function.parameters.iter().zip(arguments) {
            if !variables.declare(&name.text, slot, Assigned::Yes) {
                return Err(name.at.mistake(format!("the parameter `{}` is defined twice", name.text)));
            }
        }
        let outer = std::mem::replace(&mut self.variables, variables);
        self.calls.push(&function.name.text);
        let (last, body) = match function.body.split_last() {
            Some((Statement { kind: StatementKind::Return(value), at }, body)) => (Some((value, *at)), body),
            _ => (None, &function.body[..]),
        };
        for statement in body {
            self.statement(k, statement)?;
        }
        let result = match (function.result, last) {
            (None, None | Some((None, _))) => None,
            (None, Some((Some(value), _))) => {
                let message = format!("`{}` is void: remove the value after `return`", function.name.text);
                return Err(value.at.mistake(message));
            }
            (Some(kind), Some((Some(value), at))) => {
                self.mark(k, at)?;
                let result = self.expression(k, value)?;
                Some(result.converted(kind, value.at, "`return`")?)
            }
            (Some(kind), _) => {
                let at = last.map_or(function.name.at, |(_, at)| at);
                let name = &function.name.text;
                return Err(at.mistake(format!("`{name}` returns {kind}: end it with `return` and a value")));
            }
        };
        self.calls.pop();
        self.variables = outer;
        Ok(result)
    }

    /// Records the line to which the next operations belong. Refuses programs with too many operations.
    fn mark(&mut self, k: &mut Kernel, at: Position) -> Result<(), Mistake> {
        self.count(at)?;
        self.lines.push((check_operations(k, at)?, at.line));
        Ok(())
    }

    fn block(&mut self, k: &mut Kernel, at: Position, block: &'t [Statement]) -> Result<(), Mistake> {
        self.nested(at, |generator| {
            generator.variables.open_block();
            block.iter().try_for_each(|statement| generator.statement(k, statement))?;
            generator.variables.close_block();
            Ok(())
        })
    }

    /// Generates a block that may not be executed, or not for all elements. Returns the variables to which it has given a value.
    fn branch(
        &mut self,
        k: &mut Kernel,
        at: Position,
        block: &'t [Statement],
    ) -> Result<Branch<'t>, Mistake> {
        let start = self.variables.start_branch();
        self.block(k, at, block)?;
        Ok(self.variables.end_branch(start))
    }

    fn statement(&mut self, k: &mut Kernel, statement: &'t Statement) -> Result<(), Mistake> {
        let at = statement.at;
        self.mark(k, at)?;
        self.check_where(statement)?;
        match &statement.kind {
            StatementKind::Declare(kind, name, value) => self.declare(k, *kind, name, value.as_ref()),
            StatementKind::Assign(name, value) => {
                let what = format!("`{}`", name.text);
                let found = self.expression(k, value)?;
                self.variable(name)?.set(k, found, value.at, &what)
            }
            StatementKind::StoreAt(address, value) => {
                self.store(k, value, address)?;
                k.wait_for_stores();
                Ok(())
            }
            StatementKind::Call(name, arguments) => self.call_statement(k, name, arguments),
            StatementKind::Print(text, value) => self.print(k, text.as_ref(), value, at),
            StatementKind::If(test, then, otherwise) => self.if_else(k, test, then, otherwise),
            StatementKind::Where(condition, then, otherwise) => {
                self.where_else(k, condition, then, otherwise)
            }
            StatementKind::While(test, body) => {
                self.repeat(k, test, at, |generator, k| generator.block(k, at, body))
            }
            StatementKind::For(start, test, step, body) => {
                self.variables.open_block();
                self.statement(k, start)?;
                self.repeat(k, test, at, |generator, k| {
                    generator.block(k, at, body)?;
                    generator.statement(k, step)
                })?;
                self.variables.close_block();
                Ok(())
            }
            StatementKind::Return(_) => {
                Err(at.mistake("`return` must be the last statement of its function"))
            }
        }
    }

    /// Checks that a statement may be inside of `Where`. `Where` restricts only assignments to the selected elements. All other statements
    /// would affect every element.
    fn check_where(&self, statement: &Statement) -> Result<(), Mistake> {
        let is_allowed = match &statement.kind {
            StatementKind::Call(name, _) => !["gather", "receive", "store"].contains(&&*name.text),
            StatementKind::StoreAt(..) | StatementKind::If(..) => false,
            StatementKind::While(..) | StatementKind::For(..) => false,
            _ => true,
        };
        if is_allowed || !self.is_in_where {
            return Ok(());
        }
        let word = statement.kind.word().trim_matches('`');
        Err(statement.at.mistake(format!(
            "`{word}` may not be inside of `Where`, also not in a function that is called there: only declarations, assignments, \
             `Where` and `Print` may be"
        )))
    }

    fn declare(
        &mut self,
        k: &mut Kernel,
        kind: Type,
        name: &'t Name,
        value: Option<&'t Expression>,
    ) -> Result<(), Mistake> {
        let slot = match value {
            None => Slot::unset(k, kind),
            Some(value) => {
                let found = self.expression(k, value)?;
                Slot::new(k, kind, found, value.at, &format!("`{}`", name.text))?
            }
        };
        let assigned = if value.is_some() { Assigned::Yes } else { Assigned::No };
        match self.variables.declare(&name.text, slot, assigned) {
            true => Ok(()),
            false => {
                Err(name.at.mistake(format!("`{}` is defined twice in this block: rename one", name.text)))
            }
        }
    }

    /// Finds the variable to which a statement assigns.
    fn variable(&mut self, name: &Name) -> Result<Slot, Mistake> {
        self.variables.assign(&name.text).ok_or_else(|| unknown("variable", name.at, &name.text))
    }

    fn store(
        &mut self,
        k: &mut Kernel,
        value: &'t Expression,
        address: &'t Expression,
    ) -> Result<(), Mistake> {
        let (found, to) = (self.expression(k, value)?, self.expression(k, address)?);
        let (element, to) = to.pointer(address.at, "a store")?;
        match element {
            Element::Int => k.store(found.int(value.at, "a store to Ptr<Int>")?, to),
            Element::Float => k.store(found.float(value.at, "a store to Ptr<Float>")?, to),
            Element::Char => k.store(found.char(value.at, "a store to Ptr<Char>")?, to),
        }
        Ok(())
    }

    fn call_statement(
        &mut self,
        k: &mut Kernel,
        name: &'t Name,
        arguments: &'t [Expression],
    ) -> Result<(), Mistake> {
        match (&*name.text, arguments) {
            ("receive", [Expression { kind: ExpressionKind::Variable(variable), at, .. }]) => {
                self.variable(&Name { text: variable.clone(), at: *at })?.receive(k);
                Ok(())
            }
            ("receive", _) => Err(name.at.mistake("`receive` needs a variable: write `receive(x);`")),
            ("gather", [address]) => {
                let (_, addresses) = self.expression(k, address)?.pointer(address.at, "`gather`")?;
                k.gather(addresses);
                Ok(())
            }
            ("store", [value, address]) => self.store(k, value, address),
            _ => self.call(k, name, arguments).map(|_| ()),
        }
    }

    fn print(
        &mut self,
        k: &mut Kernel,
        text: Option<&String>,
        value: &'t Expression,
        at: Position,
    ) -> Result<(), Mistake> {
        let kind = match self.expression(k, value)? {
            Value::Float(value) => {
                k.print(value);
                Type::FLOAT
            }
            Value::Char(value) => {
                k.print(value);
                Type::Vector(Element::Char)
            }
            Value::Pointer(element, value) => {
                k.print(value);
                Type::Pointer(element)
            }
            other => {
                k.print(other.int(value.at, "`Print`")?);
                Type::INT
            }
        };
        let print = Print { line: at.line, text: text.cloned(), kind };
        self.prints.push((k.code().items.len() - 1, print));
        Ok(())
    }

    fn test(&mut self, k: &mut Kernel, test: &'t Expression) -> Result<Test, Mistake> {
        match self.expression(k, test)? {
            Value::Test(test) => Ok(test),
            other => Ok(other.condition(test.at, "this test")?.any()),
        }
    }

    fn if_else(
        &mut self,
        k: &mut Kernel,
        test: &'t Expression,
        then: &'t [Statement],
        otherwise: &'t [Statement],
    ) -> Result<(), Mistake> {
        let chosen = self.test(k, test)?;
        let mut results = [Ok(Branch::new()), Ok(Branch::new())];
        let [of_then, of_otherwise] = &mut results;
        let generator = RefCell::new(&mut *self);
        let then = |k: &mut Kernel| *of_then = generator.borrow_mut().branch(k, test.at, then);
        if otherwise.is_empty() {
            k.if_(&chosen, then);
        } else {
            k.if_else(&chosen, then, |k| {
                *of_otherwise = generator.borrow_mut().branch(k, test.at, otherwise);
            });
        }
        let [then, otherwise] = results;
        self.variables.join(then?, otherwise?);
        Ok(())
    }

    fn where_else(
        &mut self,
        k: &mut Kernel,
        condition: &'t Expression,
        then: &'t [Statement],
        otherwise: &'t [Statement],
    ) -> Result<(), Mistake> {
        let chosen = self.expression(k, condition)?.condition(condition.at, "`Where`")?;
        let outer = std::mem::replace(&mut self.is_in_where, true);
        let mut results = [Ok(Branch::new()), Ok(Branch::new())];
        let [of_then, of_otherwise] = &mut results;
        let generator = RefCell::new(&mut *self);
        k.where_else(
            chosen,
            |k| *of_then = generator.borrow_mut().branch(k, condition.at, then),
            |k| *of_otherwise = generator.borrow_mut().branch(k, condition.at, otherwise),
        );
        self.is_in_where = outer;
        let [then, otherwise] = results;
        self.variables.join(then?, otherwise?);
        Ok(())
    }

    fn repeat(
        &mut self,
        k: &mut Kernel,
        test: &'t Expression,
        at: Position,
        body: impl FnOnce(&mut Self, &mut Kernel) -> Result<(), Mistake>,
    ) -> Result<(), Mistake> {
        let start = self.variables.start_branch();
        let generator = RefCell::new(&mut *self);
        k.try_while(
            |k| {
                let mut generator = generator.borrow_mut();
                generator.mark(k, at)?;
                generator.test(k, test)
            },
            |k| body(&mut generator.borrow_mut(), k),
        )?;
        self.variables.end_branch(start);
        Ok(())
    }

    fn expression(&mut self, k: &mut Kernel, expression: &'t Expression) -> Result<Value, Mistake> {
        let at = expression.at;
        self.nested(at, |generator| match &expression.kind {
            ExpressionKind::Integer(value) => Ok(Value::Number(*value)),
            ExpressionKind::Float(value) => Ok(Value::Float((*value).into())),
            ExpressionKind::Variable(name) => generator.read(name, at),
            ExpressionKind::Unary(operator, operand) => {
                let value = generator.expression(k, operand)?;
                operators::unary(k, operator, value, operand.at)
            }
            ExpressionKind::Binary(operator, operands) => {
                let [left, right] = &**operands;
                let values = [generator.expression(k, left)?, generator.expression(k, right)?];
                operators::binary(operator, values, [at, left.at, right.at])
            }
            ExpressionKind::Call(name, arguments) => match generator.call(k, name, arguments)? {
                Some(value) => Ok(value),
                None => Err(at.mistake(format!("`{}` has no result: call it as a statement", name.text))),
            },
        })
    }

    fn read(&self, name: &str, at: Position) -> Result<Value, Mistake> {
        match self.variables.read(name) {
            None => Err(unknown("variable", at, name)),
            Some((slot, Assigned::Yes)) => Ok(slot.value()),
            Some((_, Assigned::No)) => {
                Err(at.mistake(format!("`{name}` has no value yet: assign one before this use")))
            }
            Some((_, Assigned::InPart)) => Err(at.mistake(format!(
                "`{name}` may have no value here: only one branch, a loop, or one part of `Where` assigns one. Assign a value before, \
                 such as in the declaration"
            ))),
        }
    }

    /// Generates a call of a function that the text defines, or of a function of the language.
    fn call(
        &mut self,
        k: &mut Kernel,
        name: &'t Name,
        arguments: &'t [Expression],
    ) -> Result<Option<Value>, Mistake> {
        let counts = |count: usize| match arguments.len() == count {
            true => Ok(()),
            false => Err(name.at.mistake(format!(
                "`{}` has {count} parameter{}, not {}",
                name.text,
                if count == 1 { "" } else { "s" },
                arguments.len()
            ))),
        };
        if let Some((_, count)) = FUNCTIONS.iter().find(|(function, _)| *function == name.text) {
            counts(*count)?;
            if ["gather", "store"].contains(&&*name.text) {
                return Ok(None);
            }
            let mut values = Vec::new();
            for argument in arguments {
                values.push((self.expression(k, argument)?, argument.at));
            }
            return operators::call(k, name, values).map(Some);
        }
        if name.text == "receive" {
            return Ok(None);
        }
        let Some(function) = self.functions.get(name.text.as_str()).copied() else {
            return Err(unknown("function", name.at, &name.text));
        };
        counts(function.parameters.len())?;
        if self.calls.contains(&name.text.as_str()) {
            let message = format!("`{}` calls itself: functions are inlined, so use a loop", name.text);
            return Err(name.at.mistake(message));
        }
        let mut slots = Vec::new();
        for ((kind, parameter), argument) in function.parameters.iter().zip(arguments) {
            let value = self.expression(k, argument)?;
            let what = format!("the parameter `{}` of `{}`", parameter.text, name.text);
            slots.push(Slot::new(k, *kind, value, argument.at, &what)?);
        }
        let result = self.nested(name.at, |generator| generator.inline(k, function, slots))?;
        self.mark(k, name.at)?;
        Ok(result)
    }
}

fn unknown(what: &str, at: Position, name: &str) -> Mistake {
    let remedy = match what {
        "variable" => "declare it before its use, as in `Int x = 0;`",
        _ => "define it, or use a function of the language",
    };
    at.mistake(format!("unknown {what} `{name}`: {remedy}"))
}
