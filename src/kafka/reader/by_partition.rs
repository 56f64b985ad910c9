//! All partitions through one queue, as the brokers send them.

use super::ReadError;
use super::cursor::Cursor;
use super::source::{Over, Source, TICK};
use crate::kafka::native::consumer::{Message, Queue};
use std::collections::BTreeMap;

/// How many messages are taken from librdkafka at a time.
const CHUNK: usize = 1000;

pub(super) fn read(mut source: Source, mut cursors: BTreeMap<i32, Cursor>) {
    let queue = source.queue();
    if let Ok(()) = start(&mut source, &cursors, &queue) {
        while !cursors.is_empty() {
            if step(&mut source, &mut cursors, &queue).is_err() {
                return;
            }
        }
        // Whether anyone takes the last batch makes no difference any more.
        source.hand_over().unwrap_or_default();
    }
}

fn start(source: &mut Source, cursors: &BTreeMap<i32, Cursor>, queue: &Queue) -> Result<(), Over> {
    let mut all = cursors.iter();
    let started = all.try_for_each(|(partition, cursor)| source.start(*partition, cursor, queue));
    started.map_err(|error| source.fail(error))
}

fn step(source: &mut Source, cursors: &mut BTreeMap<i32, Cursor>, queue: &Queue) -> Result<(), Over> {
    let messages = queue.take(CHUNK, TICK);
    let taken = messages.len();
    messages.iter().try_for_each(|message| pass(source, cursors, message))?;
    match cursors.first_key_value() {
        Some((partition, cursor)) if taken == 0 => source.idle((*partition, cursor.position())),
        // There is no more for now, so what there is need not wait for it.
        Some(_) if taken < CHUNK => source.hand_over(),
        _ => Ok(()),
    }
}

fn pass(source: &mut Source, cursors: &mut BTreeMap<i32, Cursor>, message: &Message<'_>) -> Result<(), Over> {
    // Of a partition that is read to its end some messages may still be in the chunk.
    let Some(cursor) = cursors.get_mut(&message.partition()) else { return Ok(()) };
    let taken: Result<_, ReadError> = source.take(message, cursor);
    if cursor.is_done() {
        cursors.remove(&message.partition());
    }
    match taken {
        Ok(Some(record)) => source.give(record),
        Ok(None) => Ok(()),
        Err(error) => Err(source.fail(error)),
    }
}
