//! The C interface of sources: what `include/weir.h` declares, and documents. `include/weir.hpp` stands on it, and so does the Python
//! package `weir`.
//!
//! [`boundary`] holds all `unsafe` code: it makes references of what C gives. [`handle`] does the work.
//! `make install` gives the libraries `libweir_c.*` their public name, `libweir.*`.

pub mod arguments;
pub mod boundary;
pub mod handle;
