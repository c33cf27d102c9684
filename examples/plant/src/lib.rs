//! A tank that fills while its valve is open, and drains while it is not.

use everywire::{Failure, Node};
use everywire_opc::server::{OpcEnum, Server, ServerInfo};
use everywire_opc::{Data, Item, Settings, Table, VarType};
use std::sync::Arc;

/// Its name for clients: its ProgID is this with `.1`.
pub const NAME: &str = "Example.Plant";

/// The tank's items, in a table.
pub struct Tank {
    table: Arc<Table>,
}

impl Tank {
    /// An empty tank with an open valve.
    #[must_use]
    pub fn new() -> Self {
        let table = Arc::new(Table::new());
        table.add(Item::new("Tank.Level", VarType::R4).analog(0.0, 100.0, "cm"), 0.0_f32);
        table.add(Item::new("Tank.Valve", VarType::BOOL).writable(), true);
        Self { table }
    }

    /// Serves it on a node, and has the node's OpcEnum tell of it. It is served as long as what this returns is held.
    ///
    /// # Errors
    /// The system gives no thread.
    pub fn serve(&self, node: &Node) -> Result<Server, Failure> {
        let info = ServerInfo::named(NAME);
        OpcEnum::serve(node).add(&info);
        Server::serve(node, info, Arc::clone(&self.table) as Arc<_>, Settings::default())
    }

    /// What happens in a moment: the level goes up or down by one.
    ///
    /// # Errors
    /// The table has no such item, which it has.
    pub fn step(&self) -> Result<(), Failure> {
        let held = |item: &str| self.table.get(item).map(|value| value.data).unwrap_or_default();
        let is_open = held("Tank.Valve") == Data::Bool(true);
        let level = if let Data::R4(level) = held("Tank.Level") { level } else { 0.0 };
        self.table.set("Tank.Level", (level + if is_open { 1.0 } else { -1.0 }).clamp(0.0, 100.0))?;
        Ok(())
    }
}

impl Default for Tank {
    fn default() -> Self {
        Self::new()
    }
}
