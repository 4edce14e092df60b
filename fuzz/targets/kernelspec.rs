//! Parses arbitrary bytes as the `kernel.json` of a kernelspec, and builds its command.

#![no_main]

use std::ffi::OsString;
use std::path::Path;

use cellwright_jupyter::kernelspec::Kernelspec;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let dir = Path::new("/nowhere/kernels/k");
    let spec = match Kernelspec::parse("k", dir, data) {
        Ok(spec) => spec,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return;
        }
    };
    let env = [(OsString::from("HOME"), OsString::from("/nowhere"))];
    for python in [None, Some(Path::new("/nowhere/bin/python3"))] {
        let command = spec.command(Path::new("/nowhere/connection.json"), python);
        assert_eq!(command.len(), spec.argv.len());
        let has_nul = |word: &OsString| word.as_encoded_bytes().contains(&0);
        assert!(!command.iter().any(has_nul));
        spec.find_program(&[], python).ok();
    }
    for (name, value) in spec.environment(&env) {
        let name = name.as_encoded_bytes();
        assert!(!name.is_empty() && !name.contains(&b'=') && !name.contains(&0));
        assert!(!value.as_encoded_bytes().contains(&0));
    }
    spec.is_ipykernel();
});
