//! What Windows hosts said to one another over OPC: read by the generated types, and written again to the same bytes.
//! The stubs are those of the wire's own tests (OISF/suricata-verify, tests/bug-6191).

use everywire::Remote;
use everywire::model::counts::Present;
use everywire::model::marshal::{MarshalList, UnmarshalList};
use everywire::model::{Body, Budget, Context, Operation, Shape, Variant};
use everywire_dcom::{NDR, NdrSink, NdrSource};
use everywire_opc::contract::{
    FILETIME, IOPCDataCallback, IOPCItemMgt, IOPCSyncIO, OPCDATASOURCE, OPCITEMDEF, OPCITEMRESULT,
    OPCITEMSTATE,
};
use everywire_opc::{Data, VarType};

const STUBS: &str = include_str!("../../wires/dcom/tests/golden/stubs.tsv");
/// Bytes of ORPCTHIS and ORPCTHAT, without extensions.
pub(crate) const THIS: usize = 32;
pub(crate) const THAT: usize = 8;
/// S_OK behind the results.
pub(crate) const HRESULT: usize = 4;

pub(crate) fn stub(name: &str) -> Vec<u8> {
    let line =
        STUBS.lines().find(|line| line.starts_with(&format!("{name}\t"))).expect("a stub of this name");
    let digits = line.rsplit('\t').next().expect("three columns");
    let octet = |at: usize| u8::from_str_radix(digits.get(at..at + 2).expect("pairs"), 16).expect("digits");
    (0..digits.len()).step_by(2).map(octet).collect()
}

fn operation<I: Remote + ?Sized>(name: &str) -> &'static Operation {
    let interface = I::interface();
    let index = interface.index_of(name.as_bytes()).expect("a method");
    interface.operations.get(index).expect("its description")
}

/// Reads values to the last byte, and writes them again: the same but for what a sender is free in (padding), which is given by
/// places in the stub.
fn same<L>(name: &str, list: &Shape, header: usize, trailer: usize, free: std::ops::Range<usize>) -> L
where
    L: MarshalList + for<'a> UnmarshalList<'a>,
{
    let stub = stub(name);
    let own = &stub[header..stub.len() - trailer];
    let body = Body {
        bytes: own.to_vec().into(),
        base: 0,
        little: true,
        dialect: 0,
        budget: Budget::default(),
        codec: &NDR,
        context: Context::default(),
        beside: None,
    };
    let mut source = NdrSource::new(&body);
    let values = L::unmarshal_list(list, &mut source).unwrap_or_else(|failure| panic!("{name}: {failure}"));
    assert_eq!(source.rest(), 0, "{name}");
    let mut sink = NdrSink::new(true);
    values.marshal_list(list, &mut sink).unwrap_or_else(|failure| panic!("{name}: {failure}"));
    let again = sink.into_bytes().unwrap_or_else(|failure| panic!("{name}: {failure}"));
    assert_eq!(again.len(), own.len(), "{name}");
    let differing: Vec<_> =
        (0..own.len()).filter(|at| own[*at] != again[*at] && !free.contains(&(at + header))).collect();
    assert_eq!(differing, Vec::<usize>::new(), "{name}");
    values
}

#[test]
fn add_items_of_windows_is_read_and_written_to_the_byte() {
    let add_items = operation::<dyn IOPCItemMgt>("AddItems");
    let (count, items): (u32, Vec<OPCITEMDEF>) =
        same("AddItems.request", &add_items.arguments, THIS, 0, 82..84);
    let item = items.first().expect("an item");
    assert_eq!((count, items.len()), (1, 1));
    assert_eq!(item.item_id.as_deref(), Some("Channel_0_User_Defined.Sine.Sine5"));
    assert_eq!((item.access_path.as_deref(), item.client, item.active), (Some(""), 0x0114_0268, 1));

    type Results = (Present<Vec<OPCITEMRESULT>>, Present<Vec<i32>>);
    let (Present(results), Present(errors)): Results =
        same("AddItems.response", &add_items.results, THAT, HRESULT, 0..0);
    let result = results.first().expect("a result");
    let found = (result.server, VarType(result.canonical_type), result.access_rights);
    assert_eq!((found, errors), ((0x019e_8158, VarType::R4, 1), vec![0]));
}

#[test]
fn reads_of_windows_are_read_and_written_to_the_byte() {
    let read = operation::<dyn IOPCSyncIO>("Read");
    let (source, count, items): (OPCDATASOURCE, u32, Vec<u32>) =
        same("SyncIO.Read.request", &read.arguments, THIS, 0, 0..0);
    assert_eq!((source, count, items), (OPCDATASOURCE::OpcDsCache, 1, vec![0x019e_8158]));

    type Results = (Present<Vec<OPCITEMSTATE>>, Present<Vec<i32>>);
    let mut values = Vec::new();
    for (name, quality) in [("empty", 0), ("r4", 192), ("junk", 0)] {
        let name = format!("SyncIO.Read.response.{name}");
        let (Present(states), Present(errors)): Results = same(&name, &read.results, THAT, HRESULT, 36..40);
        let state = states.first().expect("a state");
        assert_eq!((state.quality, errors.as_slice()), (quality, [0].as_slice()), "{name}");
        values.push(Data::from_variant(&state.value));
    }
    assert_eq!(values, [Ok(Data::Empty), Ok(Data::R4(f32::from_bits(0x3f23_2e30))), Ok(Data::Empty)]);
}

#[test]
fn a_data_change_of_windows_is_read_and_written_to_the_byte() {
    let change = operation::<dyn IOPCDataCallback>("OnDataChange");
    type Change = (u32, u32, i32, i32, u32, Vec<u32>, Vec<Variant>, Vec<u16>, Vec<FILETIME>, Vec<i32>);
    let (transaction, group, quality, error, count, items, values, qualities, times, errors): Change =
        same("OnDataChange.request", &change.arguments, THIS, 0, 0..0);
    assert_eq!((transaction, group, quality, error, count), (0, 0x052c, 0, 0, 1));
    assert_eq!((items, qualities, errors), (vec![0x0114_0268], vec![192], vec![0]));
    assert_eq!(Data::from_variant(values.first().expect("a value")), Ok(Data::R4(0.0)));
    assert_eq!(times.first().expect("a time").dw_high_date_time, 0x01d5_fd98);
}
