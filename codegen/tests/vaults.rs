//! Exceptions, signals and operations that may run twice, from each language: one servant, and one caller, in each of them.

use crate::memory::World;
use crate::tape::TAPE;
use everywire_model::{Failure, Ref, Remote};
use std::sync::{Arc, Mutex, OnceLock};

macro_rules! vault {
    ($test:ident, $contract:ident $(:: $module:ident)*, $taken:ident) => {
        #[test]
        fn $test() {
            use crate::$contract$(::$module)*::{Frozen, Overdrawn, $taken, Vault, WithdrawError};

            #[derive(Default)]
            struct Room(OnceLock<Ref<dyn Vault>>);

            impl Vault for Room {
                fn balance(&self, account: &str) -> Result<f64, Failure> {
                    assert_eq!(account, "ada");
                    Ok(8.0)
                }
                fn withdraw(&self, account: &str, amount: f64) -> Result<(), WithdrawError> {
                    match amount {
                        ..0.0 => return Err(Frozen {}.into()),
                        8.5.. => {
                            let missing = amount - 8.0;
                            return Err(Overdrawn { missing, account: account.to_owned() }.into());
                        }
                        _ => {}
                    }
                    let taken = $taken { account: account.to_owned(), amount };
                    self.0.get().unwrap().signals().emit(&taken)?;
                    Ok(())
                }
            }

            let (world, servant) = (World::speaking(&TAPE), Arc::new(Room::default()));
            assert!(servant.0.set(world.export::<dyn Vault>("vault", servant.clone())).is_ok());
            let vault: Ref<dyn Vault> = world.object("vault").into_typed();
            assert!((vault.balance("ada").unwrap() - 8.0).abs() < 1e-9);
            match vault.withdraw("ada", 10.0) {
                Err(WithdrawError::Overdrawn(Overdrawn { missing, account })) => {
                    assert!((missing - 2.0).abs() < 1e-9 && account == "ada");
                }
                other => panic!("{other:?}"),
            }
            assert!(matches!(vault.withdraw("ada", -1.0), Err(WithdrawError::Frozen(Frozen {}))));
            let heard = Arc::new(Mutex::new(Vec::new()));
            let listening = Arc::clone(&heard);
            let hears = move |taken: $taken| listening.lock().unwrap().push(taken.account);
            let subscription = vault.signals().on(hears).unwrap();
            vault.withdraw("ada", 1.0).unwrap();
            assert_eq!(*heard.lock().unwrap(), ["ada"]);
            drop(subscription);
            let interface = <dyn Vault>::interface();
            let twice = |label: &str| {
                interface.is_idempotent(interface.operations.iter().position(|own| own.label == label).unwrap())
            };
            assert!(twice("balance") && !twice("withdraw"));
        }
    };
}

vault!(a_vault_by_omg_idl, vault::vaults, VaultTaken);
vault!(a_vault_by_introspection_xml, vault_xml::vaults, VaultTaken);
vault!(a_vault_by_kidl, vault_kidl::vaults, VaultTaken);
vault!(a_vault_by_midl, vault_midl, VaultTaken);
