//! The names of all kinds.

macro_rules! name {
    ($($id:literal $kind:ident $name:literal $type:ty,)*) => {
        /// A kind of filter. Its number and its name are never given to another.
        ///
        /// ```
        /// use tamis::Kind;
        /// assert_eq!(Kind::from_name("blocked-rank"), Some(Kind::BlockedRank));
        /// assert!(Kind::BlockedRank.can_remove() && !Kind::Bloom.can_remove());
        /// assert!(Kind::ALL.iter().all(|&kind| Kind::from_id(kind.id()) == Some(kind)));
        /// ```
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u16)]
        #[non_exhaustive]
        pub enum Kind {
            $(#[doc = concat!("`", $name, "`.")] $kind = $id,)*
        }

        impl Kind {
            /// All kinds.
            pub const ALL: &'static [Self] = &[$(Self::$kind),*];

            /// The name on the command line and in reports.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$kind => $name,)*
                }
            }
        }
    };
}
kinds!(name);

impl Kind {
    /// The number in the header.
    pub const fn id(self) -> u16 {
        self as u16
    }

    /// The kind with this number.
    pub fn from_id(id: u16) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| kind.id() == id)
    }

    /// The kind with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| kind.name() == name)
    }
}
