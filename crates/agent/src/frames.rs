//! Values over a pipe between a controller and its worker: a length of four bytes, little-endian,
//! then the value in `postcard`.

use std::io::{self, Read, Write};

use serde::Serialize;
use serde::de::DeserializeOwned;

/// The longest frame: a plan with its tables, or the identity of a run.
const FRAME_MAX: usize = 1 << 30;

/// Reason for which a frame could not be passed.
#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    /// The pipe.
    #[error("pass a value to the other process: {0}")]
    Pipe(#[from] io::Error),
    /// The value.
    #[error("encode or decode a value for the other process: {0}")]
    Value(#[from] postcard::Error),
    /// The length.
    #[error("a value of {0} bytes is too long for the other process; the most is {FRAME_MAX}")]
    TooLong(usize),
}

/// Writes one value and flushes it.
///
/// # Errors
/// [`FrameError`] if the pipe is gone or the value is too long.
pub fn write_frame<T: Serialize>(out: &mut impl Write, value: &T) -> Result<(), FrameError> {
    let bytes = postcard::to_stdvec(value)?;
    if bytes.len() > FRAME_MAX {
        return Err(FrameError::TooLong(bytes.len()));
    }
    out.write_all(&(bytes.len() as u32).to_le_bytes())?;
    out.write_all(&bytes)?;
    Ok(out.flush()?)
}

/// Reads one value; none at the end of the pipe.
///
/// # Errors
/// [`FrameError`] if the pipe broke within a value, or the bytes are none.
pub fn read_frame<T: DeserializeOwned>(input: &mut impl Read) -> Result<Option<T>, FrameError> {
    let mut length = [0; 4];
    match input.read_exact(&mut length) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        Err(error) => return Err(error.into()),
    }
    let length = u32::from_le_bytes(length) as usize;
    if length > FRAME_MAX {
        return Err(FrameError::TooLong(length));
    }
    let mut bytes = vec![0; length];
    input.read_exact(&mut bytes)?;
    Ok(Some(postcard::from_bytes(&bytes)?))
}
