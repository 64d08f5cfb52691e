//! The C interface: its header, and programs in C and C++ that use the library.

mod header;
mod library;
mod programs;
mod vectors;
