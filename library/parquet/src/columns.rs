//! The columns of a file, and the names of columns and groups that a caller gives.

use std::sync::Arc;

use lockstep::hazmat::shown;

use crate::error::{Error, Result, ensure, malformed, missing, unsupported};
use crate::format::{file, schema};
use crate::thrift::Struct;

/// Maximum number of columns: their ordinals have 15 bits.
const MAX_COLUMNS: usize = 1 << 15;
/// Maximum depth of groups.
const MAX_DEPTH: usize = 256;
/// Limit on the bytes of all paths: the first number times the bytes of the schema, plus the second number. A path contains the names
/// of all groups around its column, so that without the limit a short schema could cause long paths. Each name in a path counts as the
/// bytes of its text plus [`NAME`] bytes.
const MAX_PATHS: (usize, usize) = (8, 1 << 20);
/// Bytes of a string in addition to its text.
const NAME: usize = 24;

/// A leaf of the schema: a column.
#[derive(Debug, Clone)]
pub(crate) struct Leaf {
    /// The names from the root, joined by dots.
    pub(crate) path: Arc<str>,
    pub(crate) names: Arc<[String]>,
    pub(crate) physical_type: i32,
}

/// The columns of a file, in the order of the chunks of a row group.
pub(crate) fn leaves(footer: &Struct) -> Result<Vec<Leaf>> {
    let elements = footer.structs(file::SCHEMA).ok_or_else(|| missing("the schema"))?;
    let (factor, base) = MAX_PATHS;
    let mut room = elements.bytes() * factor + base;
    let mut leaves = Vec::new();
    // For each open group: the number of children that are still to come, and its name.
    let mut groups: Vec<(i64, String)> = Vec::new();
    for (index, element) in elements.enumerate() {
        let element = element?;
        while groups.last().is_some_and(|(left, _)| *left == 0) {
            groups.pop();
        }
        let name = element.binary(schema::NAME).ok_or_else(|| missing("the name of a column"))?;
        let name = String::from_utf8(name.to_vec()).map_err(|_| malformed("a column's name is not UTF-8"))?;
        match groups.last_mut() {
            Some((left, _)) => *left -= 1,
            None if index > 0 => return Err(malformed("the schema has more elements than its groups state")),
            None => {}
        }
        // The root is a group, even if it has no columns.
        let children = element.int(schema::NUM_CHILDREN).unwrap_or(0);
        if children > 0 || index == 0 {
            ensure(groups.len() <= MAX_DEPTH, || malformed("the schema is too deep"))?;
            groups.push((children.max(0), name));
            continue;
        }
        let column_count_error = || unsupported(format!("a file with more than {MAX_COLUMNS} columns"));
        ensure(leaves.len() < MAX_COLUMNS, column_count_error)?;
        let in_groups = groups.iter().skip(1).map(|(_, name)| name);
        let size = in_groups.clone().chain([&name]).map(|name| name.len() + NAME).sum();
        let path_length_error =
            || unsupported(format!("a schema whose paths have more than {factor} times its bytes"));
        room = room.checked_sub(size).ok_or_else(path_length_error)?;
        let names: Arc<[String]> = in_groups.cloned().chain([name.clone()]).collect();
        let physical_type = element.int(schema::TYPE).unwrap_or(0) as i32;
        leaves.push(Leaf { path: names.join(".").into(), names, physical_type });
    }
    let is_complete = groups.iter().all(|(left, _)| *left <= 0);
    ensure(is_complete, || malformed("the schema has fewer elements than its groups state"))?;
    Ok(leaves)
}

impl Leaf {
    /// True if a name is the path of the column or of a group that contains the column.
    pub(crate) fn is_in(&self, name: &str) -> bool {
        self.named_part(name).is_some()
    }

    /// Returns the part of the column's path that the name describes: the whole path, or the path of a group that contains the
    /// column. None if the name describes neither. A dot in the name of a column does not make a group.
    fn named_part(&self, name: &str) -> Option<&[String]> {
        let mut rest = name;
        for (index, part) in self.names.iter().enumerate() {
            rest = rest.strip_prefix(&**part)?;
            if rest.is_empty() {
                return Some(&self.names[..=index]);
            }
            rest = rest.strip_prefix('.')?;
        }
        None
    }
}

/// Checks that a name is the name of exactly one column or group.
pub(crate) fn check_name(leaves: &[Leaf], name: &str) -> Result<()> {
    let mut named = leaves.iter().filter_map(|leaf| leaf.named_part(name));
    let Some(first) = named.next() else {
        let known = leaves.iter().map(|leaf| &*leaf.path).collect::<Vec<_>>().join(", ");
        return Err(Error::UnknownColumn { name: shown::name(name).into(), known });
    };
    if named.any(|other| other != first) {
        let what = "two columns or groups have this name, because a name has dots";
        return Err(Error::Contradiction { column: shown::name(name).into(), what });
    }
    Ok(())
}

/// Returns each column with the value that is given for the column or for a group that contains it; None if no value is given.
pub(crate) fn with_values<T: Clone>(
    leaves: Vec<Leaf>,
    values: &[(&str, T)],
) -> Result<impl Iterator<Item = Result<(Leaf, Option<T>)>>> {
    values.iter().try_for_each(|(name, _)| check_name(&leaves, name))?;
    Ok(leaves.into_iter().map(|leaf| {
        let mut found = values.iter().filter(|(name, _)| leaf.is_in(name));
        let value = found.next().map(|(_, value)| value.clone());
        if found.next().is_some() {
            let what = "two keys are given for it";
            return Err(Error::Contradiction { column: (*leaf.path).into(), what });
        }
        Ok((leaf, value))
    }))
}
