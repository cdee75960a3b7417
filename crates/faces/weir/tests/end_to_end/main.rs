//! Whole runs of the program, as users start it: the real binary, real processes, real files.
//!
//! Each run has a directory and ports of its own and a watchdog. A run that waits fails at its deadline, and all its
//! processes end with the test.

mod account;
mod adapters;
mod attribution;
mod bad_files;
mod bench;
mod boards;
#[cfg(feature = "nats")]
mod bus;
mod calibrate;
mod carriers;
#[cfg(any(feature = "nats", feature = "otlp"))]
mod certificates;
mod children;
mod clocks;
mod cores;
mod datagrams;
mod death;
mod disk;
mod every_port;
mod evidence;
mod external;
mod failures;
mod faults;
mod files;
mod filter;
mod forecast;
mod forged;
mod frames;
mod frozen;
mod full_disk;
mod hostile;
mod hosts;
mod kept_messages;
mod key_file;
mod level2_only;
mod links;
mod lossy;
#[cfg(any(feature = "nats", feature = "otlp"))]
mod observed;
mod open_files;
mod openapi;
mod orders;
#[cfg(feature = "otlp")]
mod otlp;
mod overload;
mod page;
mod payload;
mod played;
mod playing;
mod ports;
mod prometheus;
mod push;
mod quality;
#[path = "../../../../machine/weir-source/tests/five_functions/readout.rs"]
mod readout;
mod readout_crate;
mod replay;
mod restart;
mod run_number;
mod running;
mod sampling;
mod scan;
mod secret;
mod selection;
mod served;
mod service;
mod several_runs;
mod sharing;
mod silence;
mod simulation;
mod slices;
mod slinks;
mod slow_control;
mod sources;
mod staying;
mod stop;
mod streams;
mod study;
mod summary;
mod test_beam;
mod tls;
mod top;
mod trace;
mod waiting;
mod watched;
mod windows;
