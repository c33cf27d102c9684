//! Cells: what stands for a type within itself, and what they may keep.
//!
//! Shapes point to cells, so a cell lives as long as the process, with all that its type is made of. Each is made once:
//! whoever asks for the same type codes in the same order again gets the same cells. They keep the scoped names of the
//! first time.
//!
//! Bounds: a contract in which new cells are made is charged to its host, with all that it tells. A host whose contracts keep
//! `KEPT_OF_HOST` gets no new cells, nor does anybody when those of all hosts keep `KEPT`; contracts without new cells
//! are told all the same. A contract is bounded by itself (`CELLS_OF_ONE`, and `types`), so the last one of a host goes
//! beyond the host's bound by no more than that.

use super::types::{Key, unsupported};
use everywire_model::{Failure, Initiator};
use std::any::Any;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{LazyLock, Mutex, MutexGuard, OnceLock, PoisonError};

/// Most types that contain themselves, of all contracts that a process asks for.
const CELLS: usize = 1 << 16;
/// Most of them of one contract.
pub(super) const CELLS_OF_ONE: usize = 1024;
/// Octets that cells may keep, of all contracts of one host: 64 MiB.
const KEPT_OF_HOST: usize = 64 << 20;
/// Octets that all cells may keep: 512 MiB.
const KEPT: usize = 512 << 20;

/// All cells so far. Nothing is ever taken out.
#[derive(Default)]
struct CellTable {
    /// A cell is known by the hashes of the type codes up to the one that it came in, and its type.
    cells: HashMap<([u64; 2], Key), Box<dyn Any + Send>>,
    /// Octets that cells keep, by the hosts whose contracts they are of.
    hosts: HashMap<String, usize>,
    /// Octets that all of them keep.
    kept: usize,
}

static MADE: LazyLock<Mutex<CellTable>> = LazyLock::new(Mutex::default);

fn made() -> MutexGuard<'static, CellTable> {
    MADE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What one contract tells, and what of that is charged to its host.
#[derive(Default)]
pub(super) struct Account {
    host: String,
    /// Octets that the contract takes here so far.
    pub(super) told: usize,
    /// Octets of them that are charged to the host; nothing as long as no new cell was made.
    charged: Option<usize>,
    /// Cells that were asked for.
    cells: usize,
}

impl Account {
    /// The account of a contract that somebody at this host tells.
    pub(super) fn of(host: String) -> Self {
        Self { host, ..Self::default() }
    }

    /// The cell of a type that came in the type code at these hashes.
    ///
    /// # Errors
    /// There are too many, or they keep too much.
    pub(super) fn cell<T: Send + Sync + 'static>(
        &mut self,
        code: Option<[u64; 2]>,
        key: Key,
    ) -> Result<&'static OnceLock<T>, Failure> {
        if self.cells == CELLS_OF_ONE {
            return Err(too_many(Initiator::Peer, CELLS_OF_ONE));
        }
        let code = code.ok_or_else(|| unsupported("a constant of a type that contains itself"))?;
        let mut made = made();
        let CellTable { cells, hosts, kept } = &mut *made;
        let count = cells.len();
        let known = match cells.entry((code, key)) {
            Entry::Vacant(_) if count >= CELLS => return Err(too_many(Initiator::Here, CELLS)),
            Entry::Vacant(free) => {
                let of_host = hosts.get(&self.host).copied().unwrap_or_default();
                if self.charged.is_none() && of_host >= KEPT_OF_HOST {
                    return Err(too_much(Initiator::Peer, of_host, KEPT_OF_HOST));
                }
                if *kept >= KEPT {
                    return Err(too_much(Initiator::Here, *kept, KEPT));
                }
                self.charged.get_or_insert_default();
                free.insert(Box::new(&*Box::leak(Box::<OnceLock<T>>::default())))
            }
            Entry::Occupied(known) => known.into_mut(),
        };
        // The noun in the key says which kind it is.
        let cell = known.downcast_ref::<&'static OnceLock<T>>().copied();
        let cell = cell.ok_or_else(|| unsupported("such a type"))?;
        self.cells += 1;
        self.charge(&mut made);
        Ok(cell)
    }

    /// Charges what was told and is not charged yet, if cells were made.
    fn charge(&mut self, made: &mut CellTable) {
        let Some(charged) = &mut self.charged else { return };
        let more = self.told - *charged;
        *charged = self.told;
        made.kept += more;
        *made.hosts.entry(self.host.clone()).or_default() += more;
    }
}

impl Drop for Account {
    /// A cell is given out before all parts of its type were told.
    fn drop(&mut self) {
        if self.charged.is_some() {
            self.charge(&mut made());
        }
    }
}

/// More types contain themselves than this many.
#[cold]
fn too_many(initiator: Initiator, bound: usize) -> Failure {
    Failure::over_limit(initiator, "types that contain themselves", bound + 1, bound)
}

/// Types that contain themselves keep more than this.
#[cold]
fn too_much(initiator: Initiator, kept: usize, bound: usize) -> Failure {
    Failure::over_limit(initiator, "bytes that types that contain themselves keep", kept, bound)
}

#[cfg(test)]
mod tests {
    use super::*;
    use everywire_model::Kind;

    /// What a host tells with a new cell in it; `number` tells it from others.
    fn contract(host: &str, number: u64, octets: usize) -> Result<(), Failure> {
        let mut account = Account::of(host.to_owned());
        account.told = octets / 2;
        account.cell::<u32>(Some([number, octets as u64]), ("struct", host.to_owned()))?;
        account.told = octets;
        Ok(())
    }

    /// A peer that is asked again and again tells ever new types: they must not fill the memory.
    #[test]
    fn what_the_cells_of_a_host_keep_is_bounded() {
        let size = KEPT_OF_HOST / 4;
        (0..4).for_each(|number| contract("hostile", number, size).unwrap());
        for number in 4..100 {
            assert_eq!(contract("hostile", number, size).unwrap_err().kind(), Kind::LimitExceeded);
        }
        // Cells that there are cost nothing, and others are not concerned.
        contract("hostile", 3, size).unwrap();
        contract("honest", 4, size).unwrap();
    }
}
