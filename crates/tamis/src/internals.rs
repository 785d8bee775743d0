//! Mathematics, models and parts, for the report, the tests and the bench of this project.
//!
//! Not part of the interface: anything here may change or go in any version.
#![allow(missing_docs, reason = "what is inside has its own documentation")]

pub mod address {
    pub use crate::address::*;
}

pub mod balanced {
    pub mod bound {
        pub use crate::balanced::bound::*;
    }
    pub mod model {
        pub use crate::balanced::model::*;
    }
}

pub mod bits {
    pub use crate::bits::*;
}

pub mod blocked_rank {
    pub mod model {
        pub use crate::blocked_rank::model::*;
    }
}

pub mod bloom {
    pub mod model {
        pub use crate::bloom::model::*;
    }
}

pub mod coder {
    pub use crate::coder::*;
}

pub mod compressed {
    pub use crate::compressed::PositionsError;

    pub mod elias_fano {
        pub use crate::compressed::elias_fano::*;
    }
    pub mod model {
        pub use crate::traffic::model::*;
    }
    pub mod optimise {
        pub use crate::compressed::optimise::*;
    }
    pub mod sorted_list {
        pub use crate::compressed::sorted_list::*;
    }
}

pub mod dleft {
    pub mod model {
        pub use crate::dleft::model::*;
    }
}

pub mod fast_table {
    pub use crate::fast_table::museum::*;
    pub use crate::fast_table::*;

    pub mod model {
        pub use crate::fast_table::model::*;
    }
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

pub mod rank_indexed {
    pub mod model {
        pub use crate::rank_indexed::model::*;
    }
    pub mod optimise {
        pub use crate::rank_indexed::optimise::*;
    }
}
