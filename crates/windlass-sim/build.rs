//! Lets the program change SQL statements and transactions, for mutants.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // Calls of `sqlite3_prepare_v3` go to `__wrap_sqlite3_prepare_v3`, and so on.
    println!("cargo:rustc-link-arg-bins=-Wl,--wrap=sqlite3_prepare_v3,--wrap=sqlite3_step");
}
