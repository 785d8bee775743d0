//! Mathematics, models and parts, for the report, the tests and the benchmarks of this project.
//!
//! This is not part of the interface: anything here may change or go in any version.
#![allow(missing_docs, reason = "what is inside has its own documentation")]

pub mod address {
    pub use crate::address::*;
}

pub mod balanced {
    pub mod model {
        pub use crate::balanced::model::*;
    }
}

pub mod bits {
    pub use crate::bits::*;
}

pub mod blocked_rank {
    pub use crate::blocked_rank::parts::*;
    pub mod model {
        pub use crate::blocked_rank::model::*;
    }
}

pub mod bloom {
    pub use crate::bloom::parts::*;
    pub mod model {
        pub use crate::bloom::model::*;
    }
}

pub mod coder {
    pub use crate::coder::*;
}

pub mod compressed {
    pub mod elias_fano {
        pub use crate::compressed::elias_fano::*;
    }
    pub mod model {
        pub use crate::traffic::model::*;
    }
    pub mod optimise {
        pub use crate::compressed::optimise::*;
    }
}

pub mod dleft {
    pub mod model {
        pub use crate::dleft::model::*;
    }
}

pub mod fast_table {
    pub use crate::fast_table::basic::Basic;
    pub use crate::fast_table::layout::Place;
    pub use crate::fast_table::lists::*;
    pub use crate::fast_table::params::*;
    pub use crate::fast_table::*;
}

pub mod math {
    pub use crate::math::*;
}

pub mod partitioned {
    pub mod assign {
        pub use crate::partitioned::assign::*;
    }
    pub mod functions {
        pub use crate::partitioned::functions::*;
    }
    pub mod model {
        pub use crate::partitioned::model::*;
    }
}

pub mod permutation {
    pub use crate::permutation::*;
}

pub mod rank_indexed {
    pub mod model {
        pub use crate::rank_indexed::model::*;
    }
    pub mod optimise {
        pub use crate::rank_indexed::optimise::*;
    }
}

pub mod ribbon {
    pub mod model {
        pub use crate::ribbon::model::*;
    }
}
