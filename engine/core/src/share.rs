//! Sharing of large work among the threads of a processor, or among devices. Segments are cut if their pass allows it.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::chaining::ChainingState;
use crate::data::Data;
use crate::error::Result;
use crate::key::{Block, Key};
use crate::stack;
use crate::work::{Pass, Segment, Tweak};

/// Segments are cut at multiples of this number of bytes, which is the size of a page and a multiple of 16.
const GRAIN: usize = 4096;

/// A part of a segment with its own chaining state, and the share that it belongs to.
struct Piece<'s> {
    share: usize,
    /// True for the last piece of a segment.
    is_last: bool,
    state: Block,
    key: &'s Key,
    tweak: Option<Tweak<'s>>,
    data: Data<'s>,
}

/// Distributes the segments among lists and calls `run` with the lists. There is one list for each element of `targets`,
/// which is the number of bytes that the list should have. A list may be empty. After `run` has succeeded, the chaining
/// states are the same as if no segment had been cut.
///
/// # Errors
/// Errors of `run`. The chaining states of the segments are then unchanged.
pub fn segments(
    pass: Pass,
    segments: &mut [Segment<'_>],
    targets: &[usize],
    run: impl FnOnce(Vec<&mut [Segment<'_>]>) -> Result<()>,
) -> Result<()> {
    let mut pieces = Vec::new();
    let mut place = Place { targets, share: 0, used: 0 };
    for segment in &mut *segments {
        cut(pass, segment, &mut place, &mut pieces);
    }
    let mut lists: Vec<Vec<Segment<'_>>> = (0..targets.len().max(1)).map(|_| Vec::new()).collect();
    for Piece { share, key, tweak, state, data, .. } in &mut pieces {
        lists[*share].push(Segment { key, tweak: *tweak, state, data: data.reborrow() });
    }
    run(lists.iter_mut().map(Vec::as_mut_slice).collect())?;
    drop(lists);
    // The last piece of each segment ends where the segment ends.
    let last: Vec<_> = pieces.iter().filter(|piece| piece.is_last).map(|piece| piece.state).collect();
    drop(pieces);
    for (segment, state) in segments.iter_mut().zip(last) {
        *segment.state = state;
    }
    Ok(())
}

/// Divides items into consecutive lists, one list for each target. Items are not cut.
pub fn items<'i, T>(items: &'i mut [T], targets: &[usize], weight: impl Fn(&T) -> usize) -> Vec<&'i mut [T]> {
    let mut lists = Vec::new();
    let mut rest = items;
    for (index, &target) in targets.iter().enumerate() {
        let mut sum = 0;
        let fitting = rest.iter().take_while(|item| {
            let fits = sum < target;
            sum += weight(item);
            fits
        });
        let count = if index + 1 == targets.len() { rest.len() } else { fitting.count() };
        let (now, later) = rest.split_at_mut(count);
        lists.push(now);
        rest = later;
    }
    lists
}

/// Does all pieces of work at the same time: [`in_parallel`] with a thread for each piece.
pub fn at_once<T: Send, R: Send>(work: Vec<T>, run: impl Fn(T) -> R + Sync) -> Vec<R> {
    in_parallel(work.len(), work, run)
}

/// Starts the pieces of work in their order, on at most `threads` threads, and returns the results in this order. The calling
/// thread is one of the threads. If no more threads can be started, the running threads do the remaining work.
///
/// Each call starts its own threads, which end with the call. Starting them costs about 30 microseconds, while such work
/// takes milliseconds. No thread is left when the process forks or the library is unloaded.
pub fn in_parallel<T: Send, R: Send>(threads: usize, work: Vec<T>, run: impl Fn(T) -> R + Sync) -> Vec<R> {
    let helpers = threads.min(work.len()).saturating_sub(1);
    let results = Mutex::new(work.iter().map(|_| None).collect::<Vec<_>>());
    let queue = Mutex::new(work.into_iter().enumerate());
    let help = || {
        let next = || lock(&queue).next();
        while let Some((index, work)) = next() {
            let result = run(work);
            // Kernels leave round keys on the stack if they do not fit into registers.
            stack::wipe_below();
            lock(&results)[index] = Some(result);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..helpers {
            if !has_room_for_a_thread() || std::thread::Builder::new().spawn_scoped(scope, help).is_err() {
                break;
            }
        }
        help();
    });
    let results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    results.into_iter().flatten().collect()
}

/// Locks a mutex, even if a thread has panicked while it held the lock. The protected state must be
/// consistent even after such a panic.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// True if there is address space for one more thread and for the allocations of the threads. Under a limit (`ulimit -v`),
/// the address space may be too small for all threads, and a failed allocation would abort the process.
fn has_room_for_a_thread() -> bool {
    /// Twice the address space that a thread needs for its stack and for the arena that the C library reserves for
    /// allocations.
    const ROOM: usize = 256 << 20;
    let mut room = Vec::<u8>::new();
    let is_there = room.try_reserve_exact(ROOM).is_ok();
    // Without a use of `room`, the compiler may remove the allocation.
    std::hint::black_box(&room);
    is_there
}

/// True if the parts of a segment can be processed independently.
pub fn can_cut(pass: Pass) -> bool {
    !pass.is_serial() && !pass.is_read_only()
}

/// The sizes of the shares, the current share, and the number of bytes already assigned to the current share.
struct Place<'t> {
    targets: &'t [usize],
    share: usize,
    used: usize,
}

/// Cuts a segment into pieces, each with its chaining state, and marks the last piece. Shares are filled one after the other.
fn cut<'s>(pass: Pass, segment: &'s mut Segment<'_>, place: &mut Place<'_>, pieces: &mut Vec<Piece<'s>>) {
    let (key, mut tweak, mut state) = (segment.key, segment.tweak, *segment.state);
    let mut rest = segment.data.reborrow();
    while place.share + 1 < place.targets.len() {
        let Place { targets, share, used } = *place;
        let room = targets[share].saturating_sub(used);
        let at = room / GRAIN * GRAIN;
        let last = match &rest {
            Data::Host(data) if can_cut(pass) && data.len() > room => {
                data.input()[..at].last_chunk().copied()
            }
            _ if room > 0 => break,
            _ => None,
        };
        if at > 0 {
            let (data, later) = rest.split_at(at);
            pieces.push(Piece { share, is_last: false, state, key, tweak, data });
            // The passes that may be cut have chaining states that follow from the input.
            state = ChainingState::of(pass).after(state, at, last);
            if let Some(tweak) = &mut tweak {
                tweak.position += at as u64 / 16;
            }
            rest = later;
        }
        *place = Place { targets, share: share + 1, used: 0 };
    }
    place.used += rest.len();
    pieces.push(Piece { share: place.share, is_last: true, state, key, tweak, data: rest });
}

#[cfg(test)]
mod tests;
