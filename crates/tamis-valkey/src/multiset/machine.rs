//! Instructions for bits, which every server of the last ten years has, and the compiler may not
//! use without being told.
#![allow(unsafe_code)] // They are unsafe because a machine may lack them.

use super::leaf::{Leaf, Place};

/// A method of leaves, compiled once more with these instructions, and chosen where the machine
/// has them.
macro_rules! quick {
    ($name:ident, $argument:ty, $result:ty) => {
        #[inline]
        pub(super) fn $name(leaf: &Leaf, argument: $argument) -> $result {
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "bmi1,bmi2,popcnt")]
                fn quickly(leaf: &Leaf, argument: $argument) -> $result {
                    leaf.$name(argument)
                }
                if is_x86_feature_detected!("bmi1")
                    && is_x86_feature_detected!("bmi2")
                    && is_x86_feature_detected!("popcnt")
                {
                    // SAFETY: the machine has them.
                    return unsafe { quickly(leaf, argument) };
                }
            }
            leaf.$name(argument)
        }
    };
}

quick!(check, &[u8], Option<u64>);
quick!(search, u64, Place);
