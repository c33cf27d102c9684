//! What the contract became: `target/.../out/account.rs` is worth a look.

everywire::include_contract!("account");
