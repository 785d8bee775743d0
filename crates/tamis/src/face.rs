//! Methods of the traits as methods of the types, so that common use needs one import.

/// Gives a type its common methods.
macro_rules! face {
    ($($type:tt)*) => {
        impl $($type)* {
            /// An empty filter for `keys` keys at `rate`, with XXH3 and seed 0.
            pub fn with_rate(keys: u64, rate: f64) -> Result<Self, crate::spec::PlanError> {
                <Self as crate::stored::Stored>::with_rate(keys, rate)
            }
        }
    };
}
