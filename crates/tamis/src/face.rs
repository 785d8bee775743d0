//! Methods of the traits as methods of the types, so that common use needs one import.

/// Gives a type the methods that all kinds have. The type may be generic:
/// `face!(<S: Scheme> Balanced<S>)`.
macro_rules! face {
    ($($type:tt)*) => {
        impl $($type)* {
            /// A builder for a filter of `capacity` keys. It takes a rate or a size, a hash
            /// function and a seed, and fixed params.
            pub fn builder(capacity: u64) -> crate::builder::Builder<Self> {
                crate::builder::Builder::new(capacity)
            }

            /// A filter of `keys` with the rate `rate`, with XXH3 and seed 0.
            pub fn from_keys<K: crate::key::Key>(
                keys: impl IntoIterator<Item = K>,
                rate: f64,
            ) -> Result<Self, crate::spec::BuildError> {
                crate::builder::Builder::<Self>::new(0).rate(rate).build_from(keys)
            }

            /// Whether `key` may be in the set. `false` is always right, as long as only keys that
            /// are in were removed. An absent key is answered `true` with probability
            /// [`rate`](crate::Filter::rate).
            #[inline]
            pub fn contains<K: crate::key::Key + ?Sized>(&self, key: &K) -> bool {
                crate::filter::Filter::contains(self, key)
            }

            /// Insertions less removals. A key that is inserted twice counts twice.
            pub fn keys(&self) -> u64 {
                crate::filter::Filter::keys(self)
            }

            /// The probability that this filter, as it is now, answers yes for an absent key.
            pub fn rate(&self) -> f64 {
                crate::filter::Filter::rate(self)
            }

            /// The filter as bytes, the same on every machine.
            ///
            /// [`Stored::encode`](crate::Stored::encode) writes a large filter without a copy,
            /// and [`Stored::pack`](crate::Stored::pack) makes fewer bytes.
            pub fn to_bytes(&self) -> alloc::vec::Vec<u8> {
                crate::stored::Stored::encode(self).to_vec()
            }

            /// A filter from `bytes`. Every byte is checked, within the default
            /// [`Limits`](crate::Limits).
            pub fn from_bytes(bytes: &[u8]) -> Result<Self, crate::spec::WireError> {
                crate::stored::Stored::decode(bytes, crate::spec::Limits::default())
            }

            /// Adds the keys of `other`; see [`Stored::merge`](crate::Stored::merge).
            pub fn merge(&mut self, other: &Self) -> Result<(), crate::spec::MergeError> {
                crate::stored::Stored::merge(self, other)
            }

            /// Removes all keys.
            pub fn clear(&mut self) {
                crate::stored::Stored::clear(self);
            }
        }
    };
}

/// Gives a type whose memory is fixed its insertions, which cannot fail.
macro_rules! inserts {
    ($type:ty) => {
        impl $type {
            /// An empty filter for `capacity` keys with the rate `rate`, with XXH3 and seed 0.
            pub fn with_rate(capacity: u64, rate: f64) -> Result<Self, crate::spec::PlanError> {
                Self::builder(capacity).rate(rate).build()
            }

            /// Inserts `key`. Returns `true` if it was surely absent before.
            #[inline]
            pub fn insert<K: crate::key::Key + ?Sized>(&mut self, key: &K) -> bool {
                let hasher = crate::filter::Filter::hasher(self);
                crate::filter::Insert::insert_digest(self, hasher.digest(key)).unwrap_or(false)
            }
        }

        impl<K: crate::key::Key> Extend<K> for $type {
            fn extend<I: IntoIterator<Item = K>>(&mut self, keys: I) {
                keys.into_iter().for_each(|key| {
                    self.insert(&key);
                });
            }
        }
    };
}

/// Gives a type that may run out of room its insertions.
macro_rules! try_inserts {
    ($($type:tt)*) => {
        impl $($type)* {
            /// An empty filter for `capacity` keys with the rate `rate`, with XXH3 and seed 0.
            pub fn with_rate(capacity: u64, rate: f64) -> Result<Self, crate::spec::PlanError> {
                Self::builder(capacity).rate(rate).build()
            }

            /// Inserts `key`. Returns `Ok(true)` if it was surely absent before. It is an error
            /// if there is no memory left for it.
            #[inline]
            pub fn insert<K: crate::key::Key + ?Sized>(
                &mut self,
                key: &K,
            ) -> Result<bool, crate::spec::Full> {
                crate::filter::Insert::insert(self, key)
            }
        }
    };
}

/// Gives a type its removals.
macro_rules! removes {
    ($($type:tt)*) => {
        impl $($type)* {
            /// Removes one occurrence of `key`. It is an error if the filter answers no for it.
            ///
            /// Remove only keys that are in: check that in your own data. If the filter answers
            /// yes for an absent key, with probability [`rate`](crate::Filter::rate), its removal
            /// is no error, and another key may be lost for good.
            #[inline]
            pub fn remove<K: crate::key::Key + ?Sized>(
                &mut self,
                key: &K,
            ) -> Result<(), crate::spec::Absent> {
                crate::filter::Remove::remove(self, key)
            }
        }
    };
}

/// Gives a type its counts.
macro_rules! counts {
    ($($type:tt)*) => {
        impl $($type)* {
            /// How often `key` is in: never too low, and too high for about a share
            /// [`rate`](crate::Filter::rate) of the keys. `None` if its counters are saturated.
            #[inline]
            pub fn count<K: crate::key::Key + ?Sized>(&self, key: &K) -> Option<u64> {
                crate::filter::Count::count(self, key)
            }
        }
    };
}
