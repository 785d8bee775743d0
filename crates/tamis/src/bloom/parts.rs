//! The memory of a blocked filter, for a program that works on it elsewhere.

use super::{BlockedBloom, BlockedParams};
use crate::bits::Words;
use crate::spec::{Invalid, Label};

/// The blocked filter with these words.
pub fn blocked(
    params: BlockedParams,
    label: Label,
    words: &[u64],
) -> Result<BlockedBloom, Invalid> {
    if 64 * words.len() as u64 != params.bits() {
        return Err(Invalid("blocks of another number than the params say"));
    }
    let words = Words::from_slice(words).map_err(|_| Invalid("no memory"))?;
    Ok(BlockedBloom { params, label, words })
}
