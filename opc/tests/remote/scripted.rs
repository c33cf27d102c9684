//! A server that offers less than ours does, and does what a test wants of it: few methods, one group, items of any name.

use everywire::model::counts::Present;
use everywire::model::{Interface, Request, Servant};
use everywire::{Failure, Node, Reference, Remote, Signaller, Success};
use everywire_opc::contract::{
    DataAccessGroup, DataAccessGroupOnCancelComplete, FILETIME, GUID, IOPCBrowse, IOPCGroupStateMgt,
    IOPCItemMgt, IOPCServer, IOPCSyncIO, OPCBROWSEELEMENT, OPCBROWSEFILTER, OPCDATASOURCE, OPCENUMSCOPE,
    OPCITEMDEF, OPCITEMPROPERTIES, OPCITEMRESULT, OPCITEMSTATE, OPCSERVERSTATUS,
};
use everywire_opc::{Code, Data};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

const CLASS: &str = "8b1c5f0e-3d57-4a0e-9a5b-0f3c1e7d2a12";

/// A branch, and what is in it: names, ids, and flags of IOPCBrowse.
type Branch = (&'static str, Vec<(&'static str, &'static str, u32)>);

/// What the server offers.
pub(crate) struct Script {
    /// Its group calls back, reads and writes later.
    pub(crate) callbacks: bool,
    /// Its group can do nothing but say how it is set.
    pub(crate) bare: bool,
    /// How often it was asked to remove its group.
    pub(crate) removed: Arc<AtomicU32>,
    /// It can be browsed as 3.0 has it, and not otherwise: branches, and what is in them.
    pub(crate) tree: Vec<Branch>,
}

impl Default for Script {
    fn default() -> Self {
        Self { callbacks: true, bare: false, removed: Arc::default(), tree: Vec::new() }
    }
}

impl Script {
    /// The server's node, a client's, and the server's address.
    pub(crate) fn serve(self) -> (Node, Node, String) {
        let node = Node::new();
        // What is served before has no way to it.
        let address = node.listen("dcom://127.0.0.1:0?level=none").expect("a port");
        let place = address.trim_start_matches("dcom://").split(['/', '?']).next();
        let place = place.expect("a place").to_owned();
        let group = if self.bare {
            node.lend_servants(vec![<dyn IOPCGroupStateMgt as Remote>::skeleton(Arc::new(Plain))])
        } else if self.callbacks {
            let signaller = node.signaller::<dyn DataAccessGroup>("group");
            node.export_servant("group", Arc::new(Later { signaller, transaction: AtomicU32::new(0) }))
        } else {
            let servant = Arc::new(Plain);
            node.lend_servants(vec![
                <dyn IOPCGroupStateMgt as Remote>::skeleton(Arc::clone(&servant) as Arc<_>),
                <dyn IOPCItemMgt as Remote>::skeleton(Arc::clone(&servant) as Arc<_>),
                <dyn IOPCSyncIO as Remote>::skeleton(servant),
            ])
        };
        let object = Arc::new(Object { group, removed: self.removed, tree: self.tree });
        let interface = everywire::model::Hold::Static(<dyn IOPCServer as Remote>::interface());
        node.export_class_servants(CLASS, interface, move |_| {
            let server = <dyn IOPCServer as Remote>::skeleton(Arc::clone(&object) as Arc<_>);
            let browse = <dyn IOPCBrowse as Remote>::skeleton(Arc::clone(&object) as Arc<_>);
            Ok(if object.tree.is_empty() { vec![server] } else { vec![server, browse] })
        });
        let client = Node::new();
        client.listen("dcom://127.0.0.1:0?level=none").expect("a port");
        (node, client, format!("opcda://{place}/{CLASS}?level=none"))
    }
}

struct Object {
    group: Reference,
    removed: Arc<AtomicU32>,
    tree: Vec<Branch>,
}

impl IOPCServer for Object {
    #[allow(clippy::too_many_arguments)]
    fn add_group(
        &self,
        _: &str,
        _: i32,
        rate: u32,
        _: u32,
        _: &Option<i32>,
        _: &Option<f32>,
        _: u32,
        _: &GUID,
    ) -> Result<Success<(u32, u32, Option<Reference>)>, Failure> {
        Ok((1, rate, Some(self.group.clone())).into())
    }

    fn get_error_string(&self, _: i32, _: u32) -> Result<Option<String>, Failure> {
        Err(Code::NOT_IMPLEMENTED.into())
    }

    fn get_group_by_name(&self, _: &str, _: &GUID) -> Result<Option<Reference>, Failure> {
        Err(Code::NOT_IMPLEMENTED.into())
    }

    fn get_status(&self) -> Result<Option<OPCSERVERSTATUS>, Failure> {
        Err(Code::NOT_IMPLEMENTED.into())
    }

    fn remove_group(&self, _: u32, _: i32) -> Result<Success<()>, Failure> {
        self.removed.fetch_add(1, Ordering::SeqCst);
        Ok(().into())
    }

    fn create_group_enumerator(
        &self,
        _: OPCENUMSCOPE,
        _: &GUID,
    ) -> Result<Success<Option<Reference>>, Failure> {
        Err(Code::NOT_IMPLEMENTED.into())
    }
}

impl IOPCBrowse for Object {
    fn get_properties(
        &self,
        _: &[Option<String>],
        _: i32,
        _: &[u32],
    ) -> Result<Success<Vec<OPCITEMPROPERTIES>>, Failure> {
        Err(Code::NOT_IMPLEMENTED.into())
    }

    #[allow(clippy::too_many_arguments, clippy::type_complexity)]
    fn browse(
        &self,
        item_id: &str,
        _: &Option<String>,
        _: u32,
        _: OPCBROWSEFILTER,
        _: &str,
        _: &str,
        _: i32,
        _: i32,
        _: &[u32],
    ) -> Result<Success<(Option<String>, i32, Vec<OPCBROWSEELEMENT>)>, Failure> {
        let found = self.tree.iter().find(|(branch, _)| *branch == item_id).ok_or(Code::UNKNOWN_ITEM)?;
        let properties = || OPCITEMPROPERTIES { error: 0, properties: Vec::new(), reserved: 0 };
        let element = |(name, id, flags): &(&str, &str, u32)| OPCBROWSEELEMENT {
            name: Some((*name).to_owned()),
            item_id: Some((*id).to_owned()),
            flags: *flags,
            reserved: 0,
            properties: properties(),
        };
        Ok((Some(String::new()), 0, found.1.iter().map(element).collect()).into())
    }
}

/// A group that only does at once what it is asked for: the items' values are their numbers.
struct Plain;

impl IOPCGroupStateMgt for Plain {
    #[allow(clippy::type_complexity)]
    fn get_state(&self) -> Result<(u32, i32, Option<String>, i32, f32, u32, u32, u32), Failure> {
        Ok((10, 1, Some(String::new()), 0, 0.0, 0, 0, 1))
    }

    fn set_state(
        &self,
        _: &Option<u32>,
        _: &Option<i32>,
        _: &Option<i32>,
        _: &Option<f32>,
        _: &Option<u32>,
        _: &Option<u32>,
    ) -> Result<Success<u32>, Failure> {
        Ok(10.into())
    }

    fn set_name(&self, _: &str) -> Result<(), Failure> {
        Ok(())
    }

    fn clone_group(&self, _: &str, _: &GUID) -> Result<Option<Reference>, Failure> {
        Err(Code::NOT_IMPLEMENTED.into())
    }
}

fn added(items: u32) -> (Vec<OPCITEMRESULT>, Vec<i32>) {
    let result = |server| OPCITEMRESULT {
        server,
        canonical_type: 3,
        reserved: 0,
        access_rights: 3,
        blob: everywire::Bytes::new(),
    };
    ((1..=items).map(result).collect(), vec![0; items as usize])
}

impl IOPCItemMgt for Plain {
    fn add_items(&self, items: &[OPCITEMDEF]) -> Result<Success<(Vec<OPCITEMRESULT>, Vec<i32>)>, Failure> {
        Ok(added(u32::try_from(items.len()).expect("few")).into())
    }

    fn validate_items(
        &self,
        items: &[OPCITEMDEF],
        _: i32,
    ) -> Result<Success<(Vec<OPCITEMRESULT>, Vec<i32>)>, Failure> {
        self.add_items(items)
    }

    fn remove_items(&self, items: &[u32]) -> Result<Success<Vec<i32>>, Failure> {
        Ok(vec![0; items.len()].into())
    }

    fn set_active_state(&self, items: &[u32], _: i32) -> Result<Success<Vec<i32>>, Failure> {
        Ok(vec![0; items.len()].into())
    }

    fn set_client_handles(&self, items: &[u32], _: &[u32]) -> Result<Success<Vec<i32>>, Failure> {
        Ok(vec![0; items.len()].into())
    }

    fn set_datatypes(&self, items: &[u32], _: &[u16]) -> Result<Success<Vec<i32>>, Failure> {
        Ok(vec![0; items.len()].into())
    }

    fn create_enumerator(&self, _: &GUID) -> Result<Success<Option<Reference>>, Failure> {
        Err(Code::NOT_IMPLEMENTED.into())
    }
}

impl IOPCSyncIO for Plain {
    fn read(
        &self,
        _: OPCDATASOURCE,
        items: &[u32],
    ) -> Result<Success<(Vec<OPCITEMSTATE>, Vec<i32>)>, Failure> {
        let state = |item: &u32| OPCITEMSTATE {
            client: 0,
            timestamp: FILETIME { dw_low_date_time: 1, dw_high_date_time: 1 },
            quality: 192,
            reserved: 0,
            value: Data::I4(item.cast_signed()).to_variant(),
        };
        Ok((items.iter().map(state).collect(), vec![0; items.len()]).into())
    }

    fn write(&self, items: &[u32], _: &[everywire::model::Variant]) -> Result<Success<Vec<i32>>, Failure> {
        Ok(vec![0; items.len()].into())
    }
}

/// A group that begins reads and never ends them, but for those that are cancelled.
struct Later {
    signaller: Signaller<dyn DataAccessGroup>,
    transaction: AtomicU32,
}

impl Servant for Later {
    fn interface(&self) -> &Interface {
        <dyn DataAccessGroup as Remote>::interface()
    }

    fn dispatch(&self, mut request: Request) {
        let name = self.interface().operations.get(request.index()).expect("a method").name.to_string();
        let told = match name.as_str() {
            "AddItems" => {
                let (results, errors) = added(1);
                request.reply::<_, Failure>(Ok((Present(results), Present(errors))))
            }
            "IOPCAsyncIO2_Read" => {
                let (_, _, transaction) = request.arguments::<(u32, Vec<u32>, u32)>().expect("a read");
                self.transaction.store(transaction, Ordering::SeqCst);
                request.reply::<_, Failure>(Ok((9_u32, Present(vec![0_i32]))))
            }
            "Cancel2" => {
                let told = request.reply::<_, Failure>(Ok(()));
                let transaction = self.transaction.load(Ordering::SeqCst);
                self.signaller
                    .emit(&DataAccessGroupOnCancelComplete { transaction, group: 0 })
                    .expect("told");
                told
            }
            _ => {
                request.finish(Err(Code::NOT_IMPLEMENTED.into()));
                return;
            }
        };
        told.expect("it is told");
    }
}
