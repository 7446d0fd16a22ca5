//! The launcher of the sandboxes that the tests of this crate start.

fn main() {
    provost_host::sandbox::main_if_launcher();
}
