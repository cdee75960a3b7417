//! The name by which programs find the shared library when they start.

fn main() {
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libweir.so.0");
    println!("cargo::rerun-if-changed=build.rs");
}
